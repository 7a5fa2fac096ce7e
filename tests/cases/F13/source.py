# slug: metric-on-host
# verdict: fault
# at: cm += confusion_matrix(
# fix: unsafe
# device: cuda 7.0
# note: satellite segmentation, training: scikit-learn counts whole label maps in every step
import torch
from sklearn.metrics import confusion_matrix


def train(loader, net, crit, opt, cm):
    for img, mask in loader:
        opt.zero_grad()
        out = net(img.cuda())
        loss = crit(out, mask.cuda())
        loss.backward()
        opt.step()
        cm += confusion_matrix(mask.flatten(), out.argmax(1).cpu().numpy().ravel(), labels=[0, 1])
    return cm
