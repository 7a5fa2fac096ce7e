# at: shortcut = x.clone()
# fix: unsafe
class Block:
    def forward(self, x):
        shortcut = x.clone()
        x = self.layers(x)
        return x + shortcut
