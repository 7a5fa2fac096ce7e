# at: for images in loader:
# confirmed: no
import cv2
from torch.utils.data import DataLoader, Dataset


class Frames(Dataset):
    def __init__(self, frames):
        self.frames = frames

    def __getitem__(self, i):
        return cv2.resize(self.frames[i], (640, 640))


def train(frames):
    loader = DataLoader(Frames(frames), batch_size=2, num_workers=0)
    for images in loader:
        print(images.shape)
