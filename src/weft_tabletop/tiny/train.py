"""From nothing to weights: first the picture network, then the talker on its codes. One file, one loop each.

    weft train tiny --out DIR                 a GPU takes minutes, a CPU many hours
    weft train tiny --out DIR --minutes 2     as far as two minutes get

Pictures are drawn on the device from 16 x 16 tiles, so that workers send only scenes. Everything is seeded; the last
steps' speed, the time and the settings go into `training.json` beside the weights."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from weft_tabletop.tiny import vocab, weights
from weft_tabletop.tiny.corpus import BLANK, Document, documents
from weft_tabletop.tiny.net import CONTEXT, Pictures, Talker
from weft_tabletop.world.scenes import BACKGROUNDS, THINGS, Scene, read, tile_pixels

# tokens of the two kinds of rows
SHORT = 144
LONG = 384
PARTS = ("pictures", "talker", "single")
Say = Callable[[str], None]


class Drawing:
    """Scenes as numbers to pictures, on the device. An empty cell is 0, a thing its number in THINGS plus one."""

    def __init__(self, device: str) -> None:
        tiles = [[tile_pixels(name, thing) for thing in (None, *THINGS)] for name in BACKGROUNDS]
        self._tiles = torch.tensor(np.array(tiles), device=device)  # (6, 50, 16, 16, 3)
        empty = self._tiles[:, :1].float()
        self._object = (self._tiles.float() - empty).abs().sum(-1, keepdim=True) > 30  # where the objects are

    def __call__(self, scenes: Tensor) -> Tensor:
        """(N, 17): background, then sixteen cells -> (N, 3, 64, 64) in -1..1."""
        return _assemble(self._tiles[scenes[:, :1].long(), scenes[:, 1:].long()].float() / 127.5 - 1)

    def objects(self, scenes: Tensor) -> Tensor:
        return _assemble(self._object[scenes[:, :1].long(), scenes[:, 1:].long()].float())


def _assemble(tiles: Tensor) -> Tensor:
    count, _, side, _, channels = tiles.shape  # (N, 16, 16, 16, C)
    grid = tiles.view(count, 4, 4, side, side, channels).permute(0, 5, 1, 3, 2, 4)
    return grid.reshape(count, channels, 4 * side, 4 * side).contiguous()


def random_scenes(count: int, device: str, generator: torch.Generator) -> Tensor:
    things = torch.randint(1, len(THINGS) + 1, (count, 16), device=device, generator=generator)
    share = torch.rand(count, 1, device=device, generator=generator)
    empty = torch.rand(count, 16, device=device, generator=generator) > share
    ground = torch.randint(0, len(BACKGROUNDS), (count, 1), device=device, generator=generator)
    return torch.cat([ground, things.masked_fill(empty, 0)], dim=1)


def train_pictures(device: str, steps: int, seconds: float, say: Say) -> Pictures:
    """Reconstruct scenes; object pixels count five times, and some inputs are a little noisy, as a model's own pictures
    are."""
    torch.manual_seed(0)
    generator = torch.Generator(device=device).manual_seed(0)
    draw = Drawing(device)
    net = Pictures().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1.5e-3, betas=(0.9, 0.95), weight_decay=0.01)
    began = time.perf_counter()
    for step in range(steps):
        spent = max(step / steps, (time.perf_counter() - began) / seconds)
        if spent >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = 1.5e-3 * min(1.0, (step + 1) / 200) * (1 - spent) + 1e-6
        scenes = random_scenes(512, device, generator)
        clean = draw(scenes)
        sigma = torch.rand(512, 1, 1, 1, device=device, generator=generator) * 0.1
        noisy = clean + sigma * torch.randn(clean.shape, device=device, generator=generator)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            made = net(noisy)
        loss = ((made.float() - clean).abs() * (1 + 4 * draw.objects(scenes))).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if step % 500 == 0:
            say(f"pictures: step {step}, loss {loss.item():.4f}, {time.perf_counter() - began:.0f} s")
    say(f"pictures: {time.perf_counter() - began:.0f} s")
    return net.eval()


Batch = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Rows(torch.utils.data.IterableDataset):
    """Batches of (tokens, learn, scenes, where the pictures start), long dialogues and single turns in separate
    rows."""

    def __init__(self, seed: int, long_rows: int, short_rows: int, single: bool) -> None:
        self.seed = seed
        self.long_rows = long_rows
        self.short_rows = short_rows
        self.single = single

    def __iter__(self) -> Iterator[tuple[Batch, Batch | None]]:
        worker = torch.utils.data.get_worker_info()
        source = documents(self.seed * 1000 + (worker.id if worker else 0), single=self.single)
        short: list[Document] = []
        long: list[Document] = []
        while True:
            document = next(source)
            kept, size = (long, LONG) if document.turns > 1 else (short, SHORT)
            if len(document.tokens) <= size:
                kept.append(document)
            if len(short) >= self.short_rows and (self.single or len(long) >= self.long_rows):
                yield (
                    _batch(short[: self.short_rows], SHORT),
                    None if self.single else _batch(long[: self.long_rows], LONG),
                )
                short, long = short[self.short_rows :][: self.short_rows], long[self.long_rows :][: self.long_rows]


def _batch(rows: list[Document], size: int) -> Batch:
    tokens = np.zeros((len(rows), size), np.int32)
    learn = np.zeros((len(rows), size), bool)
    scenes: list[list[int]] = []
    starts: list[int] = []
    for at, row in enumerate(rows):
        tokens[at, : len(row.tokens)] = row.tokens
        learn[at, : len(row.learn)] = row.learn
        blank = np.flatnonzero(np.array(row.tokens) == BLANK)[:: vocab.PLACES]
        starts += (at * size + blank).tolist()
        scenes += [scene_numbers(scene) for scene in row.scenes]
    return tokens, learn, np.array(scenes, np.int16), np.array(starts, np.int64)


def scene_numbers(scene: Scene) -> list[int]:
    return [
        tuple(BACKGROUNDS).index(scene.background),
        *(0 if thing is None else _NUMBER[thing] for thing in scene.cells),
    ]


_NUMBER = {thing: number for number, thing in enumerate(THINGS, start=1)}


def fill(batch: Batch, pictures: Pictures, draw: Drawing, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """(tokens, places, learn) with the pictures' codes in their blanks."""
    tokens, learn, scenes, starts = (torch.as_tensor(array).to(device, non_blocking=True) for array in batch)
    tokens = tokens.long()
    places = torch.zeros_like(tokens)
    with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
        codes = pictures.codes(draw(scenes)) + len(vocab.words())  # (N, 16)
    at = starts[:, None] + torch.arange(vocab.PLACES, device=device)
    tokens.view(-1)[at] = codes
    places.view(-1)[at - 1] = torch.arange(1, vocab.PLACES + 1, device=device).expand_as(at)
    return tokens, places, learn


def train_talker(
    pictures: Pictures,
    device: str,
    steps: int,
    seconds: float,
    say: Say,
    *,
    single: bool = False,
    workers: int = 12,
    seed: int = 1,
) -> tuple[Talker, dict[str, float]]:
    """Next-token prediction on the replies alone. AdamW, one cycle."""
    torch.manual_seed(seed)
    draw = Drawing(device)
    net = Talker().to(device)
    if device == "cuda":
        step_of = torch.compile(net)
    else:
        step_of = net
    decayed = [p for p in net.parameters() if p.ndim > 1]
    other = [p for p in net.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": other, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=device == "cuda")
    if device == "cuda":
        rows = Rows(seed, 192, 640 if single else 384, single)
    else:
        rows = Rows(seed, 4, 8, single)
    loader = torch.utils.data.DataLoader(
        rows, batch_size=None, num_workers=workers, prefetch_factor=4 if workers else None
    )
    began = time.perf_counter()
    seen = 0
    step = 0
    loss = torch.zeros(())
    for step, batches in enumerate(loader):
        spent = max(step / steps, (time.perf_counter() - began) / seconds)
        if spent >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = 1.2e-3 * min(1.0, (step + 1) / 300) * (0.5 + 0.5 * np.cos(np.pi * spent)) + 1e-6
        optimizer.zero_grad(set_to_none=True)
        filled = [fill(batch, pictures, draw, device) for batch in batches if batch is not None]
        learnt = sum(int(learn[:, 1:].sum()) for _, _, learn in filled)
        for tokens, places, learn in filled:
            with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
                logits = step_of(tokens[:, :-1], places[:, :-1])
            keep = learn[:, 1:]
            loss = F.cross_entropy(logits[keep].float(), tokens[:, 1:][keep], reduction="sum") / learnt
            loss.backward()
            seen += tokens.numel()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if step % 200 == 0:
            spent_s = time.perf_counter() - began
            if single:
                name = "talker (single turns)"
            else:
                name = "talker"
            say(f"{name}: step {step}, loss {loss.item():.4f}, {spent_s:.0f} s, {seen / spent_s / 1e6:.2f} M tokens/s")
    seconds_spent = time.perf_counter() - began
    say(f"talker: {seconds_spent:.0f} s, {step} steps, {seen / 1e6:.0f} M tokens")
    return net.eval(), {
        "seconds": seconds_spent,
        "steps": step,
        "tokens": seen,
        "tokens_per_second": seen / seconds_spent,
    }


def arrays(net: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: tensor.detach().float().cpu().numpy() for name, tensor in net.state_dict().items()}


def stored(net: torch.nn.Module, path: Path, facts: dict[str, str]) -> None:
    """Save, and take the rounded weights back: what is trained on them must meet them as they ship."""
    weights.save(path, arrays(net), facts)
    kept, _ = weights.load(path)
    net.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in kept.items()}, strict=False)


@torch.no_grad()
def read_back(pictures: Pictures, device: str, count: int = 500) -> float:
    """Share of things and empty cells that are read right from reconstructed pictures."""
    from PIL import Image as Pil

    scenes = random_scenes(count, device, torch.Generator(device=device).manual_seed(99))
    made = pictures(Drawing(device)(scenes)).float().clamp(-1, 1).permute(0, 2, 3, 1).cpu().numpy()
    right = 0
    for numbers, pixels in zip(scenes.tolist(), made, strict=True):
        found = read(Pil.fromarray(np.round((pixels + 1) * 127.5).astype(np.uint8))).scene
        right += sum(a == b for a, b in zip(scene_numbers(found)[1:], numbers[1:], strict=True))
    return right / count / 16


def train(
    out: Path, *, minutes: float = 8.0, parts: tuple[str, ...] = PARTS, say: Say = print, workers: int = 12
) -> None:
    """`pictures`, `talker`, and `single`: a talker that never saw more than one turn. Pictures that are there already
    are used."""
    if torch.cuda.is_available():
        device = "cuda"
    else:
        device = "cpu"
    out.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("high")
    path = out / "training.json"
    if path.exists():
        log: dict[str, object] = json.loads(path.read_text())
    else:
        log = {}
    log |= {"device": torch.cuda.get_device_name() if device == "cuda" else "cpu", "torch": torch.__version__}
    facts = {"model": "weft tabletop tiny", "vocabulary": str(vocab.size()), "context": str(CONTEXT)}
    share = minutes * 60 / (0.2 * ("pictures" in parts) + sum(name in parts for name in ("talker", "single")))
    if "pictures" in parts:
        began = time.perf_counter()
        pictures = train_pictures(device, 8000, share * 0.2, say)
        log["pictures"] = {"seconds": time.perf_counter() - began}
    else:
        pictures = Pictures().to(device).eval()
        kept, _ = weights.load(out / "pictures.safetensors")
        pictures.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in kept.items()}, strict=False)
    stored(pictures, out / "pictures.safetensors", facts)
    say(f"pictures: {read_back(pictures, device):.4f} of objects read back right")
    for name in ("talker", "single"):
        if name in parts:
            net, log[name] = train_talker(
                pictures, device, 40_000, share, say, single=name == "single", workers=workers
            )
            weights.save(out / f"{name}.safetensors", arrays(net), facts)
    path.write_text(json.dumps(log, indent=1) + "\n")
