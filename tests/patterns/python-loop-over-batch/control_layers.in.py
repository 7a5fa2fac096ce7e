# at: x = layer(x)
# confirmed: no
def forward(self, x):
    for layer in self.layers:
        x = layer(x)
    return x
