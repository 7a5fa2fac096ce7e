# at: self.map_metric
# fix: unsafe
class Detector:
    def validation_step(self, batch, i):
        preds = self.post(self.net(batch.img))
        self.map_metric.update(preds, batch.gt)

    def on_validation_epoch_end(self):
        m = self.map_metric.compute()
        self.log("map50", m["map_50"])
        self.log("map75", m["map_75"])
        self.map_metric.reset()

    def configure_optimizers(self):
        return None
