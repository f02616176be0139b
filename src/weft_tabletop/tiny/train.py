"""From nothing to weights: first the image network, then the talker on its codes. One loop each.

    weft train tiny --out DIR                 a GPU takes minutes, a CPU many hours
    weft train tiny --out DIR --minutes 2     as far as two minutes get

Images are drawn on the device from 16 x 16 tiles, so that workers send only scenes. Everything is seeded. The time, the
speed and the device go into `training.json` beside the weights."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from weft_tabletop.tiny import vocab, weights
from weft_tabletop.tiny.batches import DocumentBatches, SceneRenderer, fill_codes, number_scene, random_scenes
from weft_tabletop.tiny.net import CONTEXT, ImageNetwork, Talker
from weft_tabletop.world.scenes import CELLS, read

PARTS = ("images", "talker", "single")
IMAGE_SHARE = 0.2  # of a talker's time, for the image network
MAX_IMAGE_STEPS = 8000
MAX_TALKER_STEPS = 40_000
IMAGE_BATCH = 512
OBJECT_WEIGHT = 4  # how much more the pixels of objects count than those of the background
MAX_INPUT_NOISE = 0.1  # some inputs are a little noisy, as a model's own images are
Say = Callable[[str], None]


def train_image_network(device: str, steps: int, seconds: float, say: Say) -> ImageNetwork:
    """Train to reconstruct scenes, for so many steps or seconds."""
    torch.manual_seed(0)
    generator = torch.Generator(device=device).manual_seed(0)
    draw = SceneRenderer(device)
    net = ImageNetwork().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1.5e-3, betas=(0.9, 0.95), weight_decay=0.01)
    start = time.perf_counter()
    for step in range(steps):
        progress = max(step / steps, (time.perf_counter() - start) / seconds)
        if progress >= 1:
            break
        set_learning_rate(optimizer, 1.5e-3 * min(1.0, (step + 1) / 200) * (1 - progress) + 1e-6)
        scenes = random_scenes(IMAGE_BATCH, device, generator)
        clean = draw(scenes)
        deviation = torch.rand(IMAGE_BATCH, 1, 1, 1, device=device, generator=generator) * MAX_INPUT_NOISE
        noisy = clean + deviation * torch.randn(clean.shape, device=device, generator=generator)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            reconstruction = net(noisy)
        pixel_weights = 1 + OBJECT_WEIGHT * draw.object_mask(scenes)
        loss = ((reconstruction.float() - clean).abs() * pixel_weights).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if step % 500 == 0:
            say(f"images: step {step}, loss {loss.item():.4f}, {time.perf_counter() - start:.0f} s")
    say(f"images: {time.perf_counter() - start:.0f} s")
    return net.eval()


def train_talker(
    image_network: ImageNetwork,
    device: str,
    steps: int,
    seconds: float,
    say: Say,
    *,
    single: bool = False,
    workers: int = 12,
    seed: int = 1,
) -> tuple[Talker, dict[str, float]]:
    """Train next-token prediction on the replies alone, with AdamW and one cycle; return the model and its speed.

    `single`: on single turns alone.
    """
    torch.manual_seed(seed)
    name = "talker (single turns)" if single else "talker"
    draw = SceneRenderer(device)
    net = Talker().to(device)
    compiled = torch.compile(net) if device == "cuda" else net
    optimizer = _build_optimizer(net, device)
    loader = _build_loader(device, seed, single=single, workers=workers)
    start = time.perf_counter()
    tokens_seen = 0
    step = 0
    loss = torch.zeros(())
    for step, batches in enumerate(loader):
        progress = max(step / steps, (time.perf_counter() - start) / seconds)
        if progress >= 1:
            break
        cycle = 0.5 + 0.5 * np.cos(np.pi * progress)
        set_learning_rate(optimizer, 1.2e-3 * min(1.0, (step + 1) / 300) * cycle + 1e-6)
        optimizer.zero_grad(set_to_none=True)
        filled = [fill_codes(batch, image_network, draw, device) for batch in batches if batch is not None]
        learnt = sum(int(loss_mask[:, 1:].sum()) for _, _, loss_mask in filled)
        for tokens, places, loss_mask in filled:
            with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
                logits = compiled(tokens[:, :-1], places[:, :-1])
            mask = loss_mask[:, 1:]
            loss = F.cross_entropy(logits[mask].float(), tokens[:, 1:][mask], reduction="sum") / learnt
            loss.backward()
            tokens_seen += tokens.numel()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if step % 200 == 0:
            elapsed = time.perf_counter() - start
            speed = tokens_seen / elapsed / 1e6
            say(f"{name}: step {step}, loss {loss.item():.4f}, {elapsed:.0f} s, {speed:.2f} M tokens/s")
    elapsed = time.perf_counter() - start
    say(f"talker: {elapsed:.0f} s, {step} steps, {tokens_seen / 1e6:.0f} M tokens")
    return net.eval(), {
        "seconds": elapsed,
        "steps": step,
        "tokens": tokens_seen,
        "tokens_per_second": tokens_seen / elapsed,
    }


def _build_optimizer(net: Talker, device: str) -> torch.optim.Optimizer:
    """Weight decay for matrices, none for vectors."""
    matrices = [parameter for parameter in net.parameters() if parameter.ndim > 1]
    vectors = [parameter for parameter in net.parameters() if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=device == "cuda")


def _build_loader(device: str, seed: int, *, single: bool, workers: int) -> "torch.utils.data.DataLoader[Any]":
    """On a CPU batches are tiny, so that a test can take a step."""
    long_rows = 192 if device == "cuda" else 4
    short_rows = 8
    if device == "cuda":
        short_rows = 640 if single else 384
    source = DocumentBatches(seed, long_rows, short_rows, single)
    return torch.utils.data.DataLoader(
        source, batch_size=None, num_workers=workers, prefetch_factor=4 if workers else None
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def to_arrays(net: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: tensor.detach().float().cpu().numpy() for name, tensor in net.state_dict().items()}


def load_weights(net: torch.nn.Module, path: Path) -> None:
    """Load weights as they ship, rounded."""
    arrays, _ = weights.load(path)
    net.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()}, strict=False)


@torch.no_grad()
def measure_accuracy(image_network: ImageNetwork, device: str, count: int = 500) -> float:
    """The share of cells that are read right from reconstructed images."""
    from PIL import Image as Pil

    scenes = random_scenes(count, device, torch.Generator(device=device).manual_seed(99))
    images = image_network(SceneRenderer(device)(scenes)).float().clamp(-1, 1).permute(0, 2, 3, 1).cpu().numpy()
    right = 0
    for numbers, pixels in zip(scenes.tolist(), images, strict=True):
        scene = read(Pil.fromarray(np.round((pixels + 1) * 127.5).astype(np.uint8))).scene
        right += sum(a == b for a, b in zip(number_scene(scene)[1:], numbers[1:], strict=True))
    return right / count / len(CELLS)


def train(
    out: Path, *, minutes: float = 8.0, parts: tuple[str, ...] = PARTS, say: Say = print, workers: int = 12
) -> None:
    """Train the parts, and write their weights into a folder.

    `images`, `talker`, and `single`: a talker that never saw more than one turn. Without the part `images` the folder's
    own image network is used. Raises UserError where there is none.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    out.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("high")
    log_file = out / "training.json"
    log: dict[str, object] = {}
    if log_file.exists():
        log = json.loads(log_file.read_text())
    log |= {"device": torch.cuda.get_device_name() if device == "cuda" else "cpu", "torch": torch.__version__}
    facts = {"model": "weft tabletop tiny", "vocabulary": str(vocab.size()), "context": str(CONTEXT)}
    talkers = [name for name in ("talker", "single") if name in parts]
    shares = len(talkers) + IMAGE_SHARE * ("images" in parts)
    seconds = minutes * 60 / shares
    image_file = out / weights.IMAGE_NETWORK_FILE
    image_network = ImageNetwork().to(device).eval()
    if "images" in parts:
        start = time.perf_counter()
        image_network = train_image_network(device, MAX_IMAGE_STEPS, seconds * IMAGE_SHARE, say)
        log["images"] = {"seconds": time.perf_counter() - start}
    else:
        load_weights(image_network, image_file)
    weights.save(image_file, to_arrays(image_network), facts)
    load_weights(image_network, image_file)  # the talker must meet the rounded weights, as they ship
    say(f"images: {measure_accuracy(image_network, device):.4f} of objects read back right")
    for name in talkers:
        net, log[name] = train_talker(
            image_network, device, MAX_TALKER_STEPS, seconds, say, single=name == "single", workers=workers
        )
        weights.save(out / f"{name}.safetensors", to_arrays(net), facts)
    log_file.write_text(json.dumps(log, indent=1) + "\n")
