# at: boxes = given.clone()
# confirmed: no


def clamped(given, convert):
    boxes = given.clone()
    return convert(boxes, inplace=True), given.sum()
