# at: self.done.synchronize()
class Prefetcher:
    def next(self):
        self.done.synchronize()
        return self.batch
