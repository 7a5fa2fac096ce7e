# at: out = model(**batch)
def encode(tokenizer, model, texts):
    batch = tokenizer(texts, padding="max_length", max_length=77, truncation=True, return_tensors="pt")
    out = model(**batch)
    return out
