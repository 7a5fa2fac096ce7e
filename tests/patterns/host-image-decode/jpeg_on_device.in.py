# at: images = [decode_jpeg(
# fix: unsafe
from torchvision.io import decode_jpeg, read_file


def load(paths):
    images = [decode_jpeg(read_file(path)) for path in paths]
    return images
