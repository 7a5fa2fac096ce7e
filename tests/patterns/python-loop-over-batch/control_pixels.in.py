# at: heat[
import math


def draw(heat, points, sigma):
    for b in range(heat.shape[0]):
        for y in range(heat.shape[1]):
            for x in range(heat.shape[2]):
                heat[b, y, x] = math.exp(-((x - points[b, 0]) ** 2 + (y - points[b, 1]) ** 2) / (2 * sigma * sigma))
    return heat
