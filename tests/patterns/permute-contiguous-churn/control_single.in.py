# at: return image.permute(2, 0, 1).contiguous()
def prepare(image):
    return image.permute(2, 0, 1).contiguous()
