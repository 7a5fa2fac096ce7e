import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import profile, schedule, record_function


class LogMel(nn.Module):
    def __init__(self, n_fft=256, hop=128, n_mels=32, sr=8000):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("fb", self._filters(n_fft // 2 + 1, n_mels, sr))

    @staticmethod
    def _filters(bins, n_mels, sr):
        to_mel = lambda f: 2595 * math.log10(1 + f / 700)
        mels = torch.linspace(0, to_mel(sr / 2), n_mels + 2)
        freqs = 700 * (10 ** (mels / 2595) - 1)
        grid = torch.linspace(0, sr / 2, bins)
        up = (grid[None] - freqs[:-2, None]) / (freqs[1:-1] - freqs[:-2])[:, None]
        down = (freqs[2:, None] - grid[None]) / (freqs[2:] - freqs[1:-1])[:, None]
        return torch.minimum(up, down).clamp(min=0)

    @torch.no_grad()
    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        power = spec.abs().square()
        mel = torch.einsum("mf,bft->bmt", self.fb, power)
        logmel = torch.log(mel + 1e-6)
        mean = logmel.mean(dim=(1, 2), keepdim=True)
        std = logmel.std(dim=(1, 2), keepdim=True)
        return (logmel - mean) / (std + 1e-5)


class SpecAugment(nn.Module):
    def __init__(self, freq=6, time=10, n=2):
        super().__init__()
        self.freq, self.time, self.n = freq, time, n

    def forward(self, x):
        if not self.training:
            return x
        x = x.clone()
        for b in range(x.shape[0]):
            for _ in range(self.n):
                f = torch.randint(0, self.freq, (1,)).item()
                f0 = torch.randint(0, x.shape[1] - f, (1,)).item()
                x[b, f0:f0 + f] = 0
                t = torch.randint(0, self.time, (1,)).item()
                t0 = torch.randint(0, x.shape[2] - t, (1,)).item()
                x[b, :, t0:t0 + t] = 0
        return x


class ConvBlock(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(cout), nn.BatchNorm2d(cout)

    def forward(self, x, pool_size=(2, 2), pool_type="avg"):
        x = F.relu_(self.bn1(self.conv1(x)))
        x = F.relu_(self.bn2(self.conv2(x)))
        if pool_type == "max":
            x = F.max_pool2d(x, kernel_size=pool_size)
        elif pool_type == "avg":
            x = F.avg_pool2d(x, kernel_size=pool_size)
        elif pool_type == "avg+max":
            x = F.avg_pool2d(x, kernel_size=pool_size) + F.max_pool2d(x, kernel_size=pool_size)
        else:
            raise Exception("Incorrect argument!")
        return x


class Tagger(nn.Module):
    def __init__(self, classes=12):
        super().__init__()
        self.frontend = LogMel()
        self.augment = SpecAugment()
        self.bn0 = nn.BatchNorm1d(32)
        self.block1 = ConvBlock(1, 16)
        self.block2 = ConvBlock(16, 32)
        self.block3 = ConvBlock(32, 48)
        self.gru = nn.GRU(48, 32, batch_first=True, bidirectional=True)
        self.att = nn.Linear(64, classes)
        self.cla = nn.Linear(64, classes)

    def forward(self, wave, mixup_lambda=None):
        x = self.frontend(wave)
        x = self.bn0(x)
        x = self.augment(x).unsqueeze(1)
        if self.training and mixup_lambda is not None:
            lam = mixup_lambda.view(-1, 1, 1, 1)
            x = x * lam + x.flip(0) * (1 - lam)
        x = self.block1(x, pool_size=(2, 2), pool_type="avg")
        x = F.dropout(x, p=0.2, training=self.training)
        x = self.block2(x, pool_size=(2, 2), pool_type="max")
        x = F.dropout(x, p=0.2, training=self.training)
        x = self.block3(x, pool_size=(2, 1), pool_type="avg+max")
        x = torch.mean(x, dim=2).transpose(1, 2)
        x, _ = self.gru(x)
        norm_att = torch.softmax(torch.tanh(self.att(x)), dim=1)
        cla = torch.sigmoid(self.cla(x))
        clip = torch.sum(norm_att * cla, dim=1)
        return {"clip": clip.clamp(1e-6, 1 - 1e-6), "frames": cla}


def average_precision(scores, targets):
    aps = []
    for c in range(scores.shape[1]):
        order = scores[:, c].argsort(descending=True)
        hits = targets[order, c]
        if hits.sum() == 0:
            continue
        precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
        aps.append((precision * hits).sum() / hits.sum())
    return torch.stack(aps).mean() if aps else torch.tensor(0.)


def main():
    net = Tagger()
    opt = torch.optim.NAdam(net.parameters(), lr=1e-3)
    with profile(schedule=schedule(wait=1, warmup=1, active=2)) as prof:
        for it in range(4):
            wave = torch.randn(6, 8000)
            target = (torch.rand(6, 12) > 0.8).float()
            lam = torch.distributions.Beta(1., 1.).sample((6,))
            mixed = target * lam[:, None] + target.flip(0) * (1 - lam[:, None])
            with record_function("net"):
                out = net(wave, lam)
            with record_function("bce"):
                loss = F.binary_cross_entropy(out["clip"], mixed)
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                m = average_precision(out["clip"], target)
            print(f"{it}: {loss.item():.3f} {m.item():.3f}")
            prof.step()


if __name__ == "__main__":
    main()
