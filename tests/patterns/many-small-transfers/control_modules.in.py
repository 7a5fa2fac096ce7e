# at: metric.to(device)
def prepare(self, device):
    for metric in self.metrics:
        metric.to(device)
