# at: loss_d.backward(retain_graph=True)
# confirmed: yes
def step(loss_d, loss_g):
    loss_d.backward(retain_graph=True)
    loss_g.backward()
