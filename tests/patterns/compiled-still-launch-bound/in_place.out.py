# at: logits = model(batch)
# line: model.compile(fullgraph=True)
# fix: unsafe
import torchvision

model = torchvision.models.resnet18().cuda().eval()
model.compile(fullgraph=True, mode="reduce-overhead")
for batch in batches:
    logits = model(batch)
