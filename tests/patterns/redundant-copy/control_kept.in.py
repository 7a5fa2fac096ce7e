# at: self.previous = frame.clone()
# confirmed: no
class Tracker:
    def step(self, frame):
        self.previous = frame.clone()
        return self.net(frame)
