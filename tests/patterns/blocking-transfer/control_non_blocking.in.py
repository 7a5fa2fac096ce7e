# at: x = x.to("cuda", non_blocking=True)
# confirmed: no
def move(x):
    x = x.to("cuda", non_blocking=True)
    return x
