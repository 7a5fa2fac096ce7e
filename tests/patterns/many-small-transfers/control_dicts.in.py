# at: moved = 
def to_device(targets, device):
    moved = [{name: value.to(device) for name, value in target.items()} for target in targets]
    return moved
