# at: x = x.permute
# confirmed: no
def forward(x):
    x = x.permute(0, 3, 1, 2).contiguous()
    return x * 2
