# at: torch.cuda.empty_cache()
# confirmed: no
import torch


def assign(images, match):
    for image in images:
        try:
            found = match(image)
        except RuntimeError:
            torch.cuda.empty_cache()
            found = match(image.cpu())
        yield found
