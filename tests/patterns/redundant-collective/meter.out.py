# at: torch.distributed.all_reduce(accuracy)
# fix: unsafe
import torch


def train(net, loader, optimizer, meter):
    for step, (images, labels) in enumerate(loader):
        logits = net(images)
        loss = torch.nn.functional.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
        accuracy = (logits.argmax(1) == labels).float().mean()
        if step % 50 == 0:
            torch.distributed.all_reduce(accuracy)
            meter.update(accuracy.item(), len(images))
        optimizer.zero_grad()
