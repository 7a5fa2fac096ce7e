# at: token = logits
# confirmed: no
def generate(model, token, length):
    out = []
    for _ in range(length):
        logits = model(token)
        token = logits.argmax(-1)
        out.append(token.item())
    return out
