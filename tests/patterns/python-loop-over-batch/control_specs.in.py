# at: compiled += [
# line: for spec in specs:
import re


def compile_all(specs, groups):
    compiled = []
    for spec in specs:
        compiled += [(re.compile(spec[0]), groups, spec[1])]
    return compiled
