# at: trainer.fit(
# line: trainer = L.Trainer(
try:
    import lightning as L
except ImportError:
    L = None


def main(model, data):
    trainer = L.Trainer(max_epochs=10, detect_anomaly=True)
    trainer.fit(model, data)


def run():
    return []
