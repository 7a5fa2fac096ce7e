# at: parts.append
def scatter(chunks, devices):
    parts = []
    for chunk, device in zip(chunks, devices):
        parts.append(chunk.to(device))
    return parts
