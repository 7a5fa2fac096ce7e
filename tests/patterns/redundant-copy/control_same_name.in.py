# at: labels = labels.clone()
# confirmed: no


def collect(loader):
    seen = []
    for images, labels in loader:
        labels = labels.clone()  # lets go of the worker's file handle
        seen += labels.tolist()
    return seen
