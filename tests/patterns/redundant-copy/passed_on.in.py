# at: self.net(frame.clone())
# fix: unsafe
class Stream:
    def step(self, frame):
        features = self.net(frame.clone())
        return features.mean() + frame.max()
