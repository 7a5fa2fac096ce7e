# at: old = self.buffer.clone()
# confirmed: no
class Memory:
    def change(self, x):
        old = self.buffer.clone()
        self.push(x)
        return old.sub(self.buffer).norm()

    def push(self, x):
        self.buffer[0].copy_(x)
