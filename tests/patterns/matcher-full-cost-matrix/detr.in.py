# at: cost = cost.view
# line: indices = [
# fix: safe
import torch


def linear_sum_assignment(cost):
    return cost.shape[0], cost.argmin(0), cost.argmin(1)


class Matcher:
    @torch.no_grad()
    def forward(self, outputs, targets):
        bs, queries = outputs["boxes"].shape[:2]
        boxes = outputs["boxes"].flatten(0, 1)
        wanted = torch.cat([t["boxes"] for t in targets])
        cost = torch.cdist(boxes, wanted, p=1)
        cost = cost.view(bs, queries, -1).cpu()
        sizes = [len(t["boxes"]) for t in targets]
        indices = [linear_sum_assignment(c[i]) for i, c in enumerate(cost.split(sizes, -1))]
        return indices


def run():
    torch.manual_seed(0)
    targets = [{"boxes": torch.rand(n, 4)} for n in (3, 5, 2)]
    return Matcher().forward({"boxes": torch.rand(3, 6, 4)}, targets)
