# at: processor(images
# confirmed: no
from transformers import AutoImageProcessor

processor = AutoImageProcessor.from_pretrained("google/vit-base-patch16-224", use_fast=True)


def encode(images):
    return processor(images, return_tensors="pt")
