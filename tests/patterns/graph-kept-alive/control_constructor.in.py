# at: blocks.append(ResnetBlock(width, width))
# confirmed: no
def stack(width, steps):
    blocks = []
    for _ in range(steps):
        blocks.append(ResnetBlock(width, width))
    return blocks
