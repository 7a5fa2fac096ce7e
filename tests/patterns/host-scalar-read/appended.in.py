# at: losses.append(loss.item())
import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
losses = []
for step in range(5):
    loss = net(torch.ones(2, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
print(sum(losses) / len(losses))


def run():
    return globals()["losses"]
