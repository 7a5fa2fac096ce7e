# at: inputs = self.processor(images, return_tensors="pt")
# line: self.processor = ViTImageProcessor.from_pretrained(
# fix: unsafe
from transformers import ViTImageProcessor, ViTModel


class Encoder:
    def __init__(self, name):
        self.processor = ViTImageProcessor.from_pretrained(name, do_rescale=True)
        self.model = ViTModel.from_pretrained(name)

    def embed(self, images):
        inputs = self.processor(images, return_tensors="pt")
        return self.model(**inputs).last_hidden_state[:, 0]
