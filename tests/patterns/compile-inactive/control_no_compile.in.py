# at: out = net(images)
# confirmed: no
import re

from torch import nn

net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GELU())
pattern = re.compile("x")
out = net(images)
