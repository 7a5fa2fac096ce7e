# slug: many-small-transfers
# verdict: fault
# at: idx = [linear_sum_assignment(c.cpu()) for c in cost]
# fix: unsafe
# device: cuda 8.0
# note: document layout detection: every prediction set is matched image by image, each with a copy of its own
import torch
import torch.nn.functional as F


def linear_sum_assignment(cost):
    """Greedy stand-in for scipy's."""
    rows, columns, cost = [], [], cost.clone()
    for _ in range(min(cost.shape)):
        row, column = divmod(int(cost.argmin()), cost.shape[1])
        rows.append(row)
        columns.append(column)
        cost[row], cost[:, column] = float("inf"), float("inf")
    return rows, columns


class SetLoss:
    def cost(self, out, targets):
        return torch.cdist(out["boxes"], targets, p=1)

    def set_loss(self, out, targets, idx):
        picked = [out["boxes"][b][rows] - targets[b][columns] for b, (rows, columns) in enumerate(idx)]
        return F.smooth_l1_loss(torch.cat(picked), torch.zeros_like(torch.cat(picked)))

    def forward(self, groups, targets):
        loss = 0
        for group in groups:                       # 13 groups x (decoder layers + aux + encoder) = 52 sets
            for out in group:
                cost = self.cost(out, targets)                       # cuda
                idx = [linear_sum_assignment(c.cpu()) for c in cost] # one copy per image per set
                loss = loss + self.set_loss(out, targets, idx)
        return loss


def result():
    torch.manual_seed(0)
    groups = [[{"boxes": torch.rand(2, 5, 4)} for _ in range(3)] for _ in range(2)]
    return SetLoss().forward(groups, torch.rand(2, 3, 4))
