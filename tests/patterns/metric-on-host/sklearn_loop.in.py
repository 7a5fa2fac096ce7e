# at: cm += 
# fix: unsafe
from sklearn.metrics import confusion_matrix


def train(loader, net, crit, opt, cm):
    for img, mask in loader:
        out = net(img.cuda())
        loss = crit(out, mask.cuda())
        loss.backward()
        opt.step()
        cm += confusion_matrix(mask.flatten(), out.argmax(1).cpu().numpy().ravel(), labels=[0, 1])
    return cm
