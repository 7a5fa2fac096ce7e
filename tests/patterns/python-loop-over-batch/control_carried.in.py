# at: state = 
# confirmed: no
def scan(x, state, cell):
    out = []
    for t in range(x.shape[1]):
        state = cell(x[:, t], state)
        out.append(state)
    return out
