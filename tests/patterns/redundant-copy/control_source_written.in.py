# at: before = state.clone()
# confirmed: no
def update(state, delta):
    before = state.clone()
    state += delta
    return (state - before).abs().max()
