# slug: slow-operator-choice
# verdict: fault
# at: rel = torch.einsum("bhxyd,md->bhxym", q, table)
# fix: safe
# note: torch 1.x copied the query first; torch 2.13 does not, so the trace is built
import torch


def relative_logits(q, table):
    rel = torch.einsum("bhxyd,md->bhxym", q, table)
    return rel.amax(-1)


def result():
    torch.manual_seed(0)
    q, table = torch.randn(2, 4, 6, 6, 5, requires_grad=True), torch.randn(11, 5, requires_grad=True)
    out = relative_logits(q, table)
    out.sum().backward()
    return out, q.grad, table.grad
