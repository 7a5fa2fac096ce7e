# at: peak = maps
def decode(heat):
    points = []
    for maps in heat:
        peak = maps.argmax()
        y, x = int(peak) // maps.shape[-1], int(peak) % maps.shape[-1]
        if 0 < x < maps.shape[-1] - 1:
            x = x + (maps[y, x + 1] - maps[y, x - 1]).sign().item() * 0.25
        points.append((x, y))
    return points
