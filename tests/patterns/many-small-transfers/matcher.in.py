# at: idx = 
# fix: unsafe
from scipy.optimize import linear_sum_assignment


def match(self, out, targets):
    cost = self.cost(out, targets)
    idx = [linear_sum_assignment(c.detach().cpu()) for c in cost]
    return idx
