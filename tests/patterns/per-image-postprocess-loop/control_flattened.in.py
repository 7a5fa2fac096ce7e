# at: outlines = [c.ravel()


def outlines_of(contours):
    outlines = [c.ravel().tolist() for c in contours]
    return outlines
