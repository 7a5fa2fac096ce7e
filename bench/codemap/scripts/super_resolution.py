import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.data as data
from torch.nn.utils import spectral_norm
from torch.profiler import profile, schedule, record_function


class Opt(dict):
    __getattr__ = dict.__getitem__


opt = Opt(scale=2, nf=16, nb=2, gc=8, batch=2, lr_size=24, lambda_pix=1.0, lambda_adv=5e-3, lambda_feat=1.0, steps=4)


def default_init(*modules, scale=0.1):
    for module in modules:
        for m in module.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight)
                m.weight.data *= scale


class ResidualDenseBlock(nn.Module):
    def __init__(self, nf=64, gc=32):
        super().__init__()
        self.conv1 = nn.Conv2d(nf, gc, 3, 1, 1)
        self.conv2 = nn.Conv2d(nf + gc, gc, 3, 1, 1)
        self.conv3 = nn.Conv2d(nf + 2 * gc, nf, 3, 1, 1)
        self.lrelu = nn.LeakyReLU(negative_slope=0.2, inplace=True)
        default_init(self.conv1, self.conv2, self.conv3)

    def forward(self, x):
        x1 = self.lrelu(self.conv1(x))
        x2 = self.lrelu(self.conv2(torch.cat((x, x1), 1)))
        x3 = self.conv3(torch.cat((x, x1, x2), 1))
        return x3 * 0.2 + x


class RRDB(nn.Module):
    def __init__(self, nf, gc):
        super().__init__()
        self.rdb1 = ResidualDenseBlock(nf, gc)
        self.rdb2 = ResidualDenseBlock(nf, gc)

    def forward(self, x):
        out = self.rdb1(x)
        out = self.rdb2(out)
        return out * 0.2 + x


class Generator(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.conv_first = nn.Conv2d(3, opt.nf, 3, 1, 1)
        self.body = nn.Sequential(*[RRDB(opt.nf, opt.gc) for _ in range(opt.nb)])
        self.conv_body = nn.Conv2d(opt.nf, opt.nf, 3, 1, 1)
        self.upconv = nn.Conv2d(opt.nf, opt.nf * opt.scale ** 2, 3, 1, 1)
        self.shuffle = nn.PixelShuffle(opt.scale)
        self.conv_hr = nn.Conv2d(opt.nf, opt.nf, 3, 1, 1)
        self.conv_last = nn.Conv2d(opt.nf, 3, 3, 1, 1)
        self.lrelu = nn.LeakyReLU(0.2, True)

    def forward(self, x):
        feat = self.conv_first(x)
        body_feat = self.conv_body(self.body(feat))
        feat = feat + body_feat
        feat = self.lrelu(self.shuffle(self.upconv(feat)))
        out = self.conv_last(self.lrelu(self.conv_hr(feat)))
        out = out + F.interpolate(x, scale_factor=opt.scale, mode='bicubic', align_corners=False)
        return out


class UNetDiscriminator(nn.Module):
    def __init__(self, nf=16):
        super().__init__()
        norm = spectral_norm
        self.conv0 = nn.Conv2d(3, nf, 3, 1, 1)
        self.conv1 = norm(nn.Conv2d(nf, nf * 2, 4, 2, 1, bias=False))
        self.conv2 = norm(nn.Conv2d(nf * 2, nf, 3, 1, 1, bias=False))
        self.conv3 = nn.Conv2d(nf, 1, 3, 1, 1)

    def forward(self, x):
        x0 = F.leaky_relu(self.conv0(x), negative_slope=0.2, inplace=True)
        x1 = F.leaky_relu(self.conv1(x0), negative_slope=0.2, inplace=True)
        x1 = F.interpolate(x1, scale_factor=2, mode='bilinear', align_corners=False)
        x2 = F.leaky_relu(self.conv2(x1), negative_slope=0.2, inplace=True)
        return self.conv3(x2 + x0)


class PerceptualLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.slices = nn.ModuleList([
            nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU()),
            nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()),
        ])
        for p in self.parameters():
            p.requires_grad = False
        self.weights = [0.5, 1.0]

    def forward(self, x, y):
        loss = 0.0
        for w, s in zip(self.weights, self.slices):
            x, y = s(x), s(y.detach())
            loss += w * F.l1_loss(x, y)
        return loss


class Charbonnier(nn.Module):
    def forward(self, pred, target, eps=1e-12):
        return torch.mean(torch.sqrt((pred - target) ** 2 + eps))


class PairedData(data.Dataset):
    def __getitem__(self, i):
        hq = torch.rand(3, opt.lr_size * opt.scale, opt.lr_size * opt.scale)
        if i % 2:
            hq = torch.rot90(hq, 1, [1, 2])
        lq = F.avg_pool2d(hq[None], opt.scale)[0]
        lq = lq + torch.randn_like(lq) * 0.02
        lq = torch.clamp((lq * 255.0).round(), 0, 255) / 255.
        return {'lq': lq, 'gt': hq.contiguous()}

    def __len__(self):
        return opt.batch * opt.steps


class SRModel:
    def __init__(self):
        self.net_g, self.net_d = Generator(opt), UNetDiscriminator()
        self.pix, self.percep = Charbonnier(), PerceptualLoss()
        self.adv = nn.BCEWithLogitsLoss()
        self.optimizer_g = torch.optim.Adam(self.net_g.parameters(), lr=1e-4, betas=(0.9, 0.99))
        self.optimizer_d = torch.optim.Adam(self.net_d.parameters(), lr=1e-4, betas=(0.9, 0.99))
        self.log_dict = {}

    def feed_data(self, batch):
        self.lq = batch['lq']
        self.gt = batch['gt']

    def gan_loss(self, pred, real):
        target = pred.new_ones(pred.size()) * (1.0 if real else 0.0)
        return self.adv(pred, target)

    def optimize_parameters(self):
        for p in self.net_d.parameters():
            p.requires_grad = False

        self.optimizer_g.zero_grad()
        with record_function('g_forward'):
            self.output = self.net_g(self.lq)
        losses = {}
        with record_function('g_losses'):
            losses['pix'] = opt.lambda_pix * self.pix(self.output, self.gt)
            losses['feat'] = opt.lambda_feat * self.percep(self.output, self.gt)
            losses['adv'] = opt.lambda_adv * self.gan_loss(self.net_d(self.output), True)
        sum(losses.values()).backward()
        self.optimizer_g.step()

        for p in self.net_d.parameters():
            p.requires_grad = True
        self.optimizer_d.zero_grad()
        real_d_pred = self.net_d(self.gt)
        l_d_real = self.gan_loss(real_d_pred, True)
        l_d_real.backward()
        fake_d_pred = self.net_d(self.output.detach().clone())
        l_d_fake = self.gan_loss(fake_d_pred, False)
        l_d_fake.backward()
        self.optimizer_d.step()
        losses.update(d_real=l_d_real, d_fake=l_d_fake)
        self.log_dict = {k: v.mean().item() for k, v in losses.items()}

    def psnr(self):
        mse = ((self.output.detach().clamp(0, 1) - self.gt) ** 2).mean(dim=[1, 2, 3])
        return (10. * torch.log10(1. / mse)).mean().item()


def main():
    model = SRModel()
    loader = data.DataLoader(PairedData(), batch_size=opt.batch, num_workers=0)
    with profile(schedule=schedule(wait=1, warmup=1, active=2)) as prof:
        start = time.time()
        for batch in loader:
            model.feed_data(batch)
            model.optimize_parameters()
            print(model.log_dict, model.psnr(), time.time() - start)
            prof.step()


if __name__ == '__main__':
    main()
