# at: pred = logits
# confirmed: no
import numpy as np


class IoU:
    def update(self, logits, target):
        pred = logits.argmax(1).cpu().numpy().ravel()
        true = target.cpu().numpy().ravel()
        self.cm += np.bincount(true * self.n + pred, minlength=self.n**2).reshape(self.n, self.n)
