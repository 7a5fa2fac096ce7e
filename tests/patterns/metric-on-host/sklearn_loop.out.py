# at: cm += 
# fix: unsafe
from sklearn.metrics import confusion_matrix
import torch


def train(loader, net, crit, opt, cm):
    for img, mask in loader:
        out = net(img.cuda())
        loss = crit(out, mask.cuda())
        loss.backward()
        opt.step()
        cm += torch.bincount(2 * mask.to(out.device).flatten() + out.argmax(1).flatten(), minlength=4).reshape(2, 2).cpu().numpy()
    return cm
