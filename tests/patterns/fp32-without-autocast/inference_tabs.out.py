# at: out = model(x)
# device: cuda 7.0
# fix: unsafe
from torchvision.models import resnet50
import torch

model = resnet50().eval().cuda()
for x in batches:
	with torch.autocast("cuda", dtype=torch.float16):
		out = model(x)
	print(out.argmax(1))
