# at: self.recordings.append(output.clone().detach())
# confirmed: no
class Recorder:
    def hook(self, module, args, output):
        self.recordings.append(output.clone().detach())
