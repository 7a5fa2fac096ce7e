"""Model families by what a trace shows: real recordings, and small models recorded with and without their names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.patterns.recorded import record
from tests.shared import shared_timeline
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.family import Family, family_of_classes, recognise

REAL = {
    "S01_kineto_resnet50_w0_v100.json.gz": Family.CNN,
    "S02_kineto_resnet50_w4_v100.json.gz": Family.CNN,
    "S03_kineto_resnet50_autogradapi_w4.json.gz": Family.CNN,
    "S04_kineto_resnet50_w0_listform.json.gz": Family.CNN,
    "S05_hta_resnet50_ddp_a100.json.gz": Family.CNN,
    "S06_hta_resnet50_v100_ns.json.gz": Family.CNN,
    "S07_hta_alexnet_a100_coldstart.json.gz": Family.CNN,
    "S08_tracelens_vit_h100.json.gz": Family.VIT,
    "S09_tracelens_vit_mi300.json.gz": Family.VIT,
    "S10_tracelens_timesformer_h100.json.gz": Family.VIDEO,
    "S11_tracelens_resnet18_ddp_ckpt_mi300.json.gz": Family.CNN,
    "S12_ao_vit_bf16_compile_a100.json.gz": Family.VIT,
    "S13_ao_vit_int8_compile_ns.json.gz": Family.VIT,
    "S14_tracelens_resnet18_gpuonly_mi210.json.gz": Family.CNN,
    "S15_dtu_resnet18_cpu.json": Family.CNN,
    "S17_hta_mtia_inference.json.gz": None,
    "S20_hta_amd_minitoy.json.gz": None,
    "S21_hta_cpu_gloo_rank34.json.gz": None,
}
PROJECTS = {
    "posekit/trace.json.gz": Family.VIT,
    "resnet_birds/trace.json.gz": Family.CNN,
    "unet_seg/trace.json.gz": Family.UNET,
    "unet_seg/trace_noshape.json.gz": Family.UNET,
    "unet_seg/trace_nostack.json.gz": Family.UNET,
}


@pytest.mark.parametrize(("name", "family"), REAL.items())
def test_recorded_traces(name: str, family: Family | None) -> None:
    assert recognise(shared_timeline(f"traces/{name}")) == family


@pytest.mark.parametrize(("name", "family"), PROJECTS.items())
def test_projects(name: str, family: Family) -> None:
    assert recognise(shared_timeline(f"projects/{name}")) == family


def _cnn(torch) -> object:
    """A residual net with one attention block, as many have."""
    nn, x = torch.nn, torch.rand(2, 8, 32, 32)
    convolutions = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(8))
    for convolution in convolutions:
        x = x + convolution(x).relu()
    tokens = x.flatten(2).transpose(1, 2)[:, :64]
    return nn.functional.scaled_dot_product_attention(tokens, tokens, tokens)


def _transformer(torch) -> object:
    nn = torch.nn
    tokens = nn.Conv2d(3, 64, 16, 16)(torch.rand(2, 3, 64, 64)).flatten(2).transpose(1, 2)
    layers = nn.ModuleList(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True) for _ in range(3))
    for layer in layers:
        tokens = layer(tokens)
    return tokens


def _windows(torch) -> object:
    nn, x = torch.nn, torch.rand(2, 16, 16, 32)
    for shift in (0, 2, 0, 2):
        x = torch.roll(x, (-shift, -shift), (1, 2)) if shift else x
        windows = x.view(2, 4, 4, 4, 4, 32).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 32)
        scores = (windows @ windows.transpose(1, 2)).softmax(-1) @ windows
        x = nn.functional.linear(scores, torch.eye(32)).view(2, 4, 4, 4, 4, 32).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(2, 16, 16, 32)
        x = torch.roll(x, (shift, shift), (1, 2)) if shift else x
    return x


def _deformable(torch) -> object:
    nn, tokens = torch.nn, torch.rand(1, 20, 32)
    levels = [torch.rand(1, 32, size, size) for size in (16, 8, 4)]
    for level in (*levels, *levels):
        weights = nn.functional.linear(tokens, torch.rand(4, 32)).softmax(-1)
        points = nn.functional.linear(tokens, torch.rand(8, 32)).view(1, 20, 4, 2).tanh()
        sampled = nn.functional.grid_sample(level, points, align_corners=False)
        tokens = tokens + (sampled * weights[:, None]).sum(-1).transpose(1, 2)
    return tokens


def _volumes(torch) -> object:
    nn, x = torch.nn, torch.rand(1, 4, 4, 16, 16)
    for _ in range(3):
        x = nn.functional.conv3d(x, torch.rand(4, 4, 3, 3, 3), padding=1).relu()
    return x


def _encoder_decoder(torch) -> object:
    nn, x, kept = torch.nn, torch.rand(1, 8, 32, 32), []
    for _ in range(3):
        x = nn.functional.conv2d(x, torch.rand(8, 8, 3, 3), padding=1)
        kept.append(x)
        x = nn.functional.max_pool2d(x, 2)
    for skipped in reversed(kept):
        x = torch.cat([nn.functional.interpolate(x, scale_factor=2), skipped], 1)
        x = nn.functional.conv2d(x, torch.rand(8, 16, 3, 3), padding=1)
    return x


def _pyramid(torch) -> object:
    """A detector's neck: maps are joined as well, but far below the size of the image."""
    nn, x, kept = torch.nn, torch.rand(1, 8, 64, 64), []
    for _ in range(4):
        x = nn.functional.conv2d(x, torch.rand(8, 8, 3, 3), padding=1, stride=2)
        kept.append(x)
    for skipped in (kept[2], kept[1]):
        x = torch.cat([nn.functional.interpolate(x, scale_factor=2), skipped], 1)
        x = nn.functional.conv2d(x, torch.rand(8, 16, 3, 3), padding=1)
    return x


def _diffusion(torch) -> object:
    nn = torch.nn
    angles = torch.rand(2)[:, None] * torch.exp(torch.arange(16) * -0.5)[None]
    times = torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)
    shift = nn.functional.linear(times, torch.rand(8, 32))
    return nn.functional.conv2d(torch.rand(2, 8, 16, 16) + shift[:, :, None, None], torch.rand(8, 8, 3, 3))


def _rotary(torch) -> object:
    """Sines and cosines as well, which a transformer makes of positions and joins with nothing."""
    angles = torch.rand(16, 8)
    sines, cosines = torch.cat([angles, angles], -1).sin(), torch.cat([angles, angles], -1).cos()
    tokens = torch.rand(2, 4, 16, 16)
    for _ in range(3):
        turned = tokens * cosines + tokens.flip(-1) * sines
        tokens = torch.nn.functional.scaled_dot_product_attention(turned, turned, tokens)
    return torch.nn.functional.linear(tokens, torch.rand(16, 16))


def _tabular(torch) -> object:
    x = torch.rand(8, 16)
    for _ in range(4):
        x = torch.nn.functional.linear(x, torch.rand(16, 16)).relu()
    return x


@pytest.mark.parametrize(
    ("model", "family"),
    [
        (_cnn, Family.CNN),
        (_transformer, Family.VIT),
        (_windows, Family.WINDOWED),
        (_deformable, Family.DETECTION),
        (_volumes, Family.VIDEO),
        (_encoder_decoder, Family.UNET),
        (_pyramid, Family.CNN),
        (_diffusion, Family.GENERATIVE),
        (_rotary, Family.VIT),
        (_tabular, None),
    ],
)
def test_operators_tell_where_no_class_is_named(model: Callable[[object], object], family: Family | None) -> None:
    torch = pytest.importorskip("torch")
    trace = record(lambda: model(torch), steps=2, with_stack=False)
    assert recognise(build_timeline(trace)) == family


def test_class_names_tell_first() -> None:
    torch = pytest.importorskip("torch")

    class SwinTransformerBlock(torch.nn.Module):
        def forward(self, x):
            return x @ x.transpose(0, 1)

    block, x = SwinTransformerBlock(), torch.rand(8, 8)
    assert recognise(build_timeline(record(lambda: block(x), steps=2))) is Family.WINDOWED


@pytest.mark.parametrize(
    ("names", "family"),
    [
        (("ResNet", "Bottleneck", "DeformableDetrModel", "MSDeformAttn"), Family.DETECTION),
        (("UNet2DConditionModel", "ResnetBlock2D", "Timesteps"), Family.GENERATIVE),
        (("Generator", "ConvTranspose2d"), Family.GENERATIVE),
        (("SwinTransformerV2", "PatchEmbed", "WindowAttention"), Family.WINDOWED),
        (("VideoMAEModel", "VideoMAELayer"), Family.VIDEO),
        (("UNet", "DoubleConv"), Family.UNET),
        (("VisionTransformer", "Block", "PatchEmbed"), Family.VIT),
        (("MobileViTBlock", "Conv2d"), None),
        (("ResNet", "BasicBlock"), None),
        (("VideoCapture", "MyNet"), None),
        ((), None),
    ],
)
def test_families_of_class_names(names: tuple[str, ...], family: Family | None) -> None:
    assert family_of_classes(names) == family
