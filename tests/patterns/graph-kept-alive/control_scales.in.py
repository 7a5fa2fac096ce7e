# at: losses.append(multi_scale_loss(pred, target))
# confirmed: no
def loss_over_scales(preds, target):
    losses = []
    for pred in preds:
        losses.append(multi_scale_loss(pred, target))
    return sum(losses)
