# at: scores.append(image.max().item())
# confirmed: no
def peaks(images):
    scores = []
    for image in images:
        scores.append(image.max().item())
    return scores
