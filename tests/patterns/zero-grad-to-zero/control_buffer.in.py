# at: self.total.zero_()
# confirmed: no
class Meter:
    def reset(self):
        self.total.zero_()
