"""Training a model on dialogues that ask for memory, and measuring what it remembers: a smaller tiny model.

Sources are views of the same dialogues. Shares are of tokens, so that models with different mixes learn from equally
many."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.training.checkpoint import Checkpoint, open_checkpoint, replace_file
from weft.training.mix import Mix, Source
from weft_tabletop.tiny import vocab, weights
from weft_tabletop.tiny.endpoint import SHIPPED
from weft_tabletop.tiny.net import Talker
from weft_tabletop.weaver.built_rows import dataset_rows, digest_dataset
from weft_tabletop.weaver.latents import CHANGED
from weft_tabletop.weaver.memory import ALONE, KINDS, find_places, test_rows, view_rows
from weft_tabletop.weaver.memory_recipes import MemoryRecipe
from weft_tabletop.weaver.rows import Rows
from weft_tabletop.weaver.train.loop import Report, Schedule, autocast, run_stage
from weft_tabletop.weaver.train.stages import find_device
from weft_tabletop.weaver.world import TableWorld, find_world

SIZES = {"micro": (64, 3), "full": (192, 4)}  # width and layers
TEST_ROWS = 256
HELD_OUT_SEED = 1_000_003
VERSION = "2"  # counts changes of what the same recipe trains


class TalkerRows:
    """Rows on the device."""

    def __init__(self, rows: Rows, world: TableWorld, device: str) -> None:
        self.tokens = torch.as_tensor(rows.tokens, device=device)
        self.learn = torch.as_tensor(rows.learn, device=device)
        self.places = torch.as_tensor(find_places(rows.tokens, len(world.cells)).astype(np.int8), device=device)

    def __len__(self) -> int:
        return len(self.tokens)


class MemoryLearner:
    def __init__(
        self,
        net: Talker,
        views: Sequence[str],
        rows: Mapping[str, TalkerRows],
        tests: Mapping[str, TalkerRows],
        device: str,
        *,
        world: TableWorld,
        own: float = 0.0,
    ) -> None:
        self.net: nn.Module = net
        self._world = world
        self.device = device
        self._talker = net
        self._views = views
        self._rows = rows
        self._tests = tests
        self._own = own
        self._forward = net.states

    def sizes(self) -> list[int]:
        return [len(self._rows[view]) for view in self._views]

    def take_step(self, drawn: "Sequence[np.ndarray[Any, Any]]", generator: torch.Generator) -> Tensor:
        chosen = [
            (self._rows[view], torch.as_tensor(numbers, device=self.device))
            for view, numbers in zip(self._views, drawn, strict=True)
            if len(numbers)
        ]
        learnt = sum(rows.learn[numbers][:, 1:].sum() for rows, numbers in chosen)
        total = torch.zeros((), device=self.device)
        for rows, numbers in chosen:
            tokens = rows.tokens[numbers].long()
            places = rows.places[numbers].long()
            mask = rows.learn[numbers][:, 1:]
            shown = move_digits(tokens, generator)
            if self._own:
                has_own = torch.rand(len(tokens), 1, device=self.device, generator=generator) < self._own
                shown = torch.where(has_own, self._own_images(tokens, places, rows.learn[numbers]), shown)
            with autocast(self.device):
                states = self._forward(shown[:, :-1], places[:, :-1])
                logits = self._talker.logits(states[mask])
            loss = F.cross_entropy(logits.float(), tokens[:, 1:][mask], reduction="sum") / learnt
            loss.backward()
            total = total + loss.detach()
        return total

    @torch.no_grad()
    def _own_images(self, tokens: Tensor, places: Tensor, learn: Tensor) -> Tensor:
        """The tokens with the model's own images in place of those that it learns, each place the most likely one after
        the right ones (scheduled sampling in one pass)."""
        words = len(vocab.words())
        with autocast(self.device):
            logits = self._talker.logits(self._forward(tokens[:, :-1], places[:, :-1])).float()
        guess = F.pad(logits[..., words:].argmax(-1) + words, (1, 0))
        return torch.where(learn & (tokens >= words), guess, tokens)

    def measure(self, *, last: bool) -> dict[str, Any]:
        with autocast(self.device):
            measured = measure_memory(self._talker, self._tests)
            if last and "chain" in self._tests:
                measured |= measure_chain(self._talker, self._tests["chain"])
        return measured

    def save(self, folder: Path) -> None:
        arrays = {name: tensor.detach().float().cpu().numpy() for name, tensor in self.net.state_dict().items()}
        facts = {"model": "weft tabletop tiny", "vocabulary": str(vocab.size()), "world": self._world.name}
        part = folder / ".talker.safetensors.part"
        weights.save(part, arrays, facts)
        part.replace(folder / "talker.safetensors")
        replace_file(folder / weights.IMAGE_NETWORK_FILE, (SHIPPED / weights.IMAGE_NETWORK_FILE).read_bytes())


def move_digits(tokens: Tensor, generator: torch.Generator) -> Tensor:
    """The tokens with some numbers of their images moved by one level, as they are in full images."""
    words = len(vocab.words())
    moved = tokens
    stride = 1
    for level in reversed(vocab.LEVELS):
        digit = (tokens - words) // stride % level
        chance = torch.rand(tokens.shape, device=tokens.device, generator=generator)
        up = (chance < CHANGED / 2) & (digit + 1 < level)
        down = (chance > 1 - CHANGED / 2) & (digit > 0)
        moved = moved + stride * (up.long() - down.long())
        stride *= level
    return torch.where(tokens >= words, moved, tokens)


@torch.no_grad()
def measure_memory(talker: Talker, tests: Mapping[str, TalkerRows]) -> dict[str, Any]:
    """By kind: the share of replies that are right in every token, and the loss. A reply in which every token is the
    most likely one after the right ones is the reply that the model writes."""
    measured: dict[str, Any] = {}
    for kind, rows in tests.items():
        if kind == "chain":
            continue
        tokens = rows.tokens.long()
        mask = rows.learn[:, 1:]
        states = talker.states(tokens[:, :-1], rows.places[:, :-1].long())
        logits = talker.logits(states[mask]).float()
        expected = tokens[:, 1:][mask]
        wrong = torch.zeros_like(mask)
        wrong[mask] = logits.argmax(-1) != expected
        measured[kind] = round(1 - wrong.any(dim=1).float().mean().item(), 4)
        measured[f"{kind} loss"] = round(F.cross_entropy(logits, expected).item(), 5)
    return measured


@torch.no_grad()
def measure_chain(talker: Talker, rows: TalkerRows) -> dict[str, Any]:
    """Exposure bias: the share of images that are right by turn, with references and with the model's own images in the
    history. All rows ask for equally many images."""
    words = len(vocab.words())
    tokens = rows.tokens.long()
    places = rows.places.long()
    is_code = (tokens >= words) & rows.learn
    images = int(is_code.sum(dim=1)[0]) // int(places.max())
    positions = is_code.int().argsort(dim=1, descending=True, stable=True)[:, : int(is_code.sum(dim=1)[0])]
    number = torch.arange(len(tokens), device=tokens.device)[:, None]
    expected = tokens[number, positions].view(len(tokens), images, -1)
    logits = talker.logits(talker.states(tokens, places)[number, positions - 1]).float()
    taught = (logits[..., words:].argmax(-1) + words).view_as(expected)
    own = tokens.clone()
    for place in range(positions.shape[1]):
        at = positions[:, place]
        used = int(at.max())
        states = talker.states(own[:, :used], places[:, :used])[number[:, 0], at - 1]
        own[number[:, 0], at] = talker.logits(states).float()[:, words:].argmax(-1) + words
    written = own[number, positions].view_as(expected)
    measured: dict[str, Any] = {}
    for turn in range(images):
        measured[f"turn {turn + 1} reference"] = _share((taught == expected)[:, turn])
        measured[f"turn {turn + 1} own"] = _share((written == expected)[:, turn])
    return measured


def _share(right: Tensor) -> float:
    return round(right.all(dim=-1).float().mean().item(), 4)


def train_memory(
    recipe: MemoryRecipe,
    out: Path,
    *,
    device: str = "",
    workers: int = 0,
    folder: Path | None = None,
    data: Path | None = None,
    report: Report | None = None,
) -> Checkpoint:
    """Train one model into a folder. Rows are kept in `folder`, where there is one. `data` is a dataset in WEAVE's
    files in place of dialogues that are made here."""
    device = find_device(device)
    world = find_world(recipe.world)
    manifest = {**msgspec.to_builtins(recipe), "version": VERSION, "device": device}
    if data is not None:
        manifest["data"] = digest_dataset(data)
        del manifest["rows"]  # there are as many as the dataset has
    finished = open_checkpoint(out, manifest)
    if finished.done:
        return finished
    torch.manual_seed(recipe.seed)
    shares = {"dialogue": recipe.share, recipe.view: 1 - recipe.share}
    views = [view for view, share in shares.items() if share]
    made = {
        view: make_rows(world, view, recipe.rows, recipe.faults, workers, folder)
        if data is None
        else dataset_rows(data, world, view)
        for view in views
    }
    rows = {view: TalkerRows(some, world, device) for view, some in made.items()}
    lengths = {view: some.tokens.shape[1] for view, some in rows.items()}
    weight_of = {view: shares[view] / lengths[view] for view in views}
    batch = round(recipe.tokens * sum(weight_of.values()))
    mix = Mix(tuple(Source(view, weight_of[view], view) for view in views), recipe.seed)
    tests = {
        kind: TalkerRows(make_test_rows(world, kind, folder), world, device)
        for kind in (*KINDS, *(ALONE + kind for kind in KINDS), "chain")
    }
    net = Talker(*SIZES[world.name]).to(device)
    learner = MemoryLearner(net, views, rows, tests, device, world=world, own=recipe.own)
    schedule = Schedule(recipe.steps, batch, recipe.rate, recipe.every)
    return run_stage(learner, mix, out, schedule, manifest, report=report)


def make_rows(world: TableWorld, view: str, count: int, faults: float, workers: int, folder: Path | None) -> Rows:
    name = f"{world.name}-{view}-{count}-{faults}"
    return keep_rows(folder, name, lambda: view_rows(world, view, count, 0, workers, faults))


def make_test_rows(world: TableWorld, kind: str, folder: Path | None) -> Rows:
    return keep_rows(folder, f"{world.name}-test-{kind}", lambda: test_rows(world, kind, TEST_ROWS, HELD_OUT_SEED))


def keep_rows(folder: Path | None, name: str, make: Callable[[], Rows]) -> Rows:
    """Return rows that are made once, where there is a folder for them."""
    if folder is None:
        return make()
    file = folder / f"{name}-{VERSION}.npz"
    if not file.exists():
        make().save(file)
    return Rows.load(file)
