# at: with profile(label="load"):
# confirmed: no
from mytools import profile

with profile(label="load"):
    pass
