# at: self.map_metric
# fix: unsafe
class Detector:
    def validation_step(self, batch, i):
        preds = self.post(self.net(batch.img))
        m = self.map_metric(preds, batch.gt)
        self.log("map50", m["map_50"])
        self.log("map75", m["map_75"])

    def configure_optimizers(self):
        return None
