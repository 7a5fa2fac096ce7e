# at: paths.append(path)
# confirmed: no
def collect(names, root):
    paths = []
    for name in names:
        path = root.joinpath(name)
        paths.append(path)
    return paths
