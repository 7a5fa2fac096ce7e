# at: return reader.read(path)
# line: OPTIONS = {
# fix: unsafe
OPTIONS = {"size": 256, "use_turbojpeg": False}


def load(path, reader):
    return reader.read(path)
