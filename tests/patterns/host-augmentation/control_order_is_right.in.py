# at: return self.transform(image)
# confirmed: no
from torchvision import transforms


class Birds:
    def __init__(self, images):
        self.images = images
        self.transform = transforms.Compose([transforms.Resize(224), transforms.ToTensor(), transforms.Normalize(0.5, 0.2)])

    def __getitem__(self, i):
        image = self.images[i]
        return self.transform(image)
