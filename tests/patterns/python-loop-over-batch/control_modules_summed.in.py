# at: out += branch
# confirmed: no
def forward(self, x):
    out = 0
    for branch in self.branches:
        out += branch(x)
    return out
