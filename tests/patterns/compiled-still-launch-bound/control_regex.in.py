# at: logits = model(batch)
# confirmed: no
import re

pattern = re.compile(r"\d+")
logits = model(batch)
