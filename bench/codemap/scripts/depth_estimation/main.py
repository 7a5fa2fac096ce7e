"""Self-supervised monocular depth."""
import argparse

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, schedule

from depth.blocks import SSIM, BackprojectDepth, Project3D
from depth.nets import DepthDecoder, Encoder, PoseNet

H, W, B = 48, 80, 2


def disp_to_depth(disp, min_depth=0.1, max_depth=100.0):
    min_disp = 1 / max_depth
    max_disp = 1 / min_depth
    scaled_disp = min_disp + (max_disp - min_disp) * disp
    return 1 / scaled_disp


def rot_from_axisangle(vec):
    angle = torch.norm(vec, 2, 2, True)
    axis = vec / (angle + 1e-7)
    ca, sa = torch.cos(angle), torch.sin(angle)
    C = 1 - ca
    x, y, z = (axis[..., i].unsqueeze(1) for i in range(3))
    rot = torch.zeros((vec.shape[0], 4, 4))
    rot[:, 0, 0] = torch.squeeze(x * (x * C) + ca)
    rot[:, 0, 1] = torch.squeeze(x * (y * C) - z * sa)
    rot[:, 0, 2] = torch.squeeze(z * (x * C) + y * sa)
    rot[:, 1, 0] = torch.squeeze(x * (y * C) + z * sa)
    rot[:, 1, 1] = torch.squeeze(y * (y * C) + ca)
    rot[:, 2, 2] = torch.squeeze(z * (z * C) + ca)
    rot[:, 3, 3] = 1
    return rot


class Trainer:
    def __init__(self, opts):
        self.opts = opts
        self.models = {"encoder": Encoder()}
        self.models["depth"] = DepthDecoder(self.models["encoder"].num_ch_enc)
        self.models["pose"] = PoseNet()
        params = []
        for m in self.models.values():
            params += list(m.parameters())
        self.optim = torch.optim.Adam(params, opts.lr)
        self.ssim = SSIM()
        self.backproject = BackprojectDepth(B, H, W)
        self.project = Project3D(B, H, W)
        K = torch.tensor([[0.58 * W, 0, 0.5 * W, 0], [0, 1.92 * H, 0.5 * H, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        self.K = K.unsqueeze(0).repeat(B, 1, 1)
        self.inv_K = torch.linalg.pinv(self.K)

    def process_batch(self, inputs):
        features = self.models["encoder"](inputs["color", 0])
        outputs = self.models["depth"](features)
        for f in (-1, 1):
            pair = (inputs["color", f], inputs["color", 0]) if f < 0 else (inputs["color", 0], inputs["color", f])
            vec = self.models["pose"](*pair)
            T = rot_from_axisangle(vec[..., :3])
            T = T + F.pad(vec[..., 3:].transpose(1, 2), (3, 0, 0, 1))
            outputs["T", f] = T
        self.generate_images_pred(inputs, outputs)
        return outputs, self.compute_losses(inputs, outputs)

    def generate_images_pred(self, inputs, outputs):
        for scale in range(2):
            disp = F.interpolate(outputs["disp", scale], [H, W], mode="bilinear", align_corners=False)
            depth = disp_to_depth(disp)
            for f in (-1, 1):
                cam_points = self.backproject(depth, self.inv_K)
                pix = self.project(cam_points, self.K, outputs["T", f])
                outputs["color", f, scale] = F.grid_sample(
                    inputs["color", f],
                    pix,
                    padding_mode="border",
                    align_corners=False,
                )

    def reprojection(self, pred, target):
        l1 = torch.abs(target - pred).mean(1, True)
        ssim = self.ssim(pred, target).mean(1, True)
        return 0.85 * ssim + 0.15 * l1

    def smoothness(self, disp, img):
        mean = disp.mean(2, True).mean(3, True)
        disp = disp / (mean + 1e-7)
        gx = torch.abs(disp[:, :, :, :-1] - disp[:, :, :, 1:])
        gy = torch.abs(disp[:, :, :-1, :] - disp[:, :, 1:, :])
        ix = torch.mean(torch.abs(img[:, :, :, :-1] - img[:, :, :, 1:]), 1, keepdim=True)
        iy = torch.mean(torch.abs(img[:, :, :-1, :] - img[:, :, 1:, :]), 1, keepdim=True)
        return (gx * torch.exp(-ix)).mean() + (gy * torch.exp(-iy)).mean()

    def compute_losses(self, inputs, outputs):
        total = 0
        target = inputs["color", 0]
        for scale in range(2):
            losses = torch.cat([self.reprojection(outputs["color", f, scale], target) for f in (-1, 1)], 1)
            identity = torch.cat([self.reprojection(inputs["color", f], target) for f in (-1, 1)], 1)
            identity += torch.randn(identity.shape) * 1e-5
            combined = torch.cat((identity, losses), dim=1)
            to_optimise, idxs = torch.min(combined, dim=1)
            loss = to_optimise.mean()
            img = F.interpolate(target, outputs["disp", scale].shape[-2:], mode="area")
            loss += 1e-3 * self.smoothness(outputs["disp", scale], img) / (2 ** scale)
            total += loss
        return {"loss": total / 2}

    def train(self, prof):
        for step in range(self.opts.steps):
            inputs = {("color", f): torch.rand(B, 3, H, W) for f in (0, -1, 1)}
            outputs, losses = self.process_batch(inputs)
            self.optim.zero_grad()
            losses["loss"].backward()
            self.optim.step()
            prof.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--steps", type=int, default=4)
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2)) as prof:
        Trainer(parser.parse_args()).train(prof)
