# at: for (x,) in loader:
# line: loader = DataLoader(
# device: cpu
"""A script with tabs, a form feed and CRLF."""
import torch
from torch.utils.data import DataLoader, TensorDataset

def run():
	data = TensorDataset(torch.arange(4.0))
	loader = DataLoader(
		data,
		batch_size = 2  # klein – 🧪
	)
	out = []
	for (x,) in loader:
		out.append(x + 1)
	return out
