# at: gc.collect()
# confirmed: no
import gc


def profile(nets, x):
    times = []
    for net in nets:
        try:
            times.append(net(x))
        except RuntimeError:
            times.append(None)
        finally:
            gc.collect()
    return times
