# at: out = model(x)
# device: cuda 7.0
# fix: unsafe
from torchvision.models import resnet50

model = resnet50().eval().cuda()
for x in batches:
	out = model(x)
	print(out.argmax(1))
