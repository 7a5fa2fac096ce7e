# at: indices = 
# confirmed: no
from scipy.optimize import linear_sum_assignment


def match(predictions, targets, cost):
    indices = [linear_sum_assignment(cost(p, t).cpu()) for p, t in zip(predictions, targets)]
    return indices
