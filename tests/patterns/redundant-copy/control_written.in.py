# at: out = x.clone()
# confirmed: no
def paint(x, boxes):
    out = x.clone()
    for y0, x0, y1, x1 in boxes:
        out[:, y0:y1, x0:x1] = 1.0
    return out * 2
