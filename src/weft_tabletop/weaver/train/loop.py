"""The loop that every stage of training shares: draw rows, take a step, measure now and then, and write a checkpoint
from which the same command goes on."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from msgspec import Struct
from msgspec.structs import replace
from torch import Tensor, nn

from weft.errors import UserError
from weft.training.checkpoint import (
    LOG_FILE,
    STATE_FILE,
    Checkpoint,
    hold_folder,
    open_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from weft.training.log import TrainingLog
from weft.training.mix import Mix

WARM_STEPS = 100
LAST_RATE = 0.1  # of the highest one, at the end of the cosine
HALF_PRECISION = True  # on a GPU
MAX_NORM = 1.0
WEIGHT_DECAY = 0.02
Report = Callable[[int, Mapping[str, Any]], None]  # is told of each measurement, after it is logged


class Schedule(Struct, frozen=True):
    """How long, with how many rows a step, at which rate, and after how many steps to measure and to save."""

    steps: int
    batch: int
    rate: float
    every: int = 200


def autocast(device: str) -> torch.autocast:
    """Half precision, on a GPU."""
    return torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda" and HALF_PRECISION)


class Learner(Protocol):
    """A stage: what is trained, its loss, and what is measured."""

    net: nn.Module  # everything that is trained or saved
    device: str

    def sizes(self) -> Sequence[int]:
        """How many rows each source of the mix has."""
        ...

    def take_step(self, drawn: "Sequence[np.ndarray[Any, Any]]", generator: torch.Generator) -> Tensor:
        """Compute the loss on these rows and its gradients; return the loss."""
        ...

    def measure(self, *, last: bool) -> dict[str, Any]:
        """Measure on held-out rows; at the end also what takes longer."""
        ...

    def save(self, folder: Path) -> None:
        """Write the weights, as they ship."""
        ...


def run_stage(
    learner: Learner,
    mix: Mix,
    out: Path,
    schedule: Schedule,
    manifest: Mapping[str, Any],
    *,
    report: Report | None = None,
) -> Checkpoint:
    """Train a stage into a folder, or go on where an earlier call stopped."""
    with hold_folder(out), _one_thread():
        checkpoint = open_checkpoint(out, manifest)
        if checkpoint.done:
            return checkpoint
        return _train(learner, mix, checkpoint, schedule, report)


@contextmanager
def _one_thread() -> Generator[None]:
    """On a CPU use one thread: how many there are changes the order of sums, and so the weights. Nets so small are no
    slower, and on a busy machine threads would wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _train(learner: Learner, mix: Mix, checkpoint: Checkpoint, schedule: Schedule, report: Report | None) -> Checkpoint:
    out = checkpoint.folder
    trained = [parameter for parameter in learner.net.parameters() if parameter.requires_grad]
    optimizer = build_optimizer(trained, schedule.rate, learner.device)
    first, seen = _load_state(learner, optimizer, out / STATE_FILE)
    log = TrainingLog(out / LOG_FILE, first)
    if not first:
        write_checkpoint(checkpoint)
        measured = learner.measure(last=False)
        log.add(0, **measured)
        if report is not None:
            report(0, measured)
    start = time.perf_counter() - log.seconds
    losses: list[Tensor] = []
    checkpoint = replace(checkpoint, step=first, seen=seen)
    for step in range(first, schedule.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, schedule)
        optimizer.zero_grad(set_to_none=True)
        drawn = mix.draw(step, schedule.batch, learner.sizes())
        for source, rows in zip(mix.sources, drawn, strict=True):
            seen[source.data] = seen.get(source.data, 0) + len(rows)
        losses.append(learner.take_step(drawn, step_generator(mix.seed, step, learner.device)).detach())
        torch.nn.utils.clip_grad_norm_(trained, MAX_NORM)
        optimizer.step()
        is_last = step + 1 == schedule.steps
        if is_last or (step + 1) % schedule.every == 0:
            seconds = time.perf_counter() - start
            mean = round(torch.stack(losses).mean().item(), 5)
            measured = {"loss": mean, "seconds": round(seconds, 2), **learner.measure(last=is_last)}
            log.add(step + 1, **measured)
            losses.clear()
            checkpoint = replace(checkpoint, step=step + 1, seen=dict(seen))
            learner.save(out)
            _save_state(learner, optimizer, out / STATE_FILE, step + 1, seen)
            write_checkpoint(checkpoint)
            if report is not None:
                report(step + 1, measured)
    write_checkpoint(replace(checkpoint, done=True))
    (out / STATE_FILE).unlink(missing_ok=True)  # only to go on from
    return read_checkpoint(out) or checkpoint


def step_generator(seed: int, step: int, device: str) -> torch.Generator:
    """All randomness of a step, so that training that goes on at a step is the training that was never interrupted."""
    return torch.Generator(device=device).manual_seed(seed * 10_000_019 + step)


def learning_rate(step: int, schedule: Schedule) -> float:
    """Rise for a few steps, then fall along a cosine."""
    warm = min(1.0, (step + 1) / min(WARM_STEPS, max(1, schedule.steps // 5)))
    cosine = 0.5 + 0.5 * float(np.cos(np.pi * step / schedule.steps))
    return schedule.rate * warm * (LAST_RATE + (1 - LAST_RATE) * cosine)


def build_optimizer(parameters: Sequence[Tensor], rate: float, device: str) -> torch.optim.Optimizer:
    """AdamW, with weight decay for matrices and none for vectors."""
    groups = [
        {"params": [one for one in parameters if one.ndim > 1], "weight_decay": WEIGHT_DECAY},
        {"params": [one for one in parameters if one.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=device == "cuda")


def _save_state(
    learner: Learner, optimizer: torch.optim.Optimizer, path: Path, step: int, seen: Mapping[str, int]
) -> None:
    """Write the state beside the last one, then replace that."""
    part = path.with_name(f".{path.name}.part")
    state = {"step": step, "seen": dict(seen), "net": learner.net.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, part)
    part.replace(path)


def _load_state(learner: Learner, optimizer: torch.optim.Optimizer, path: Path) -> tuple[int, dict[str, int]]:
    """Load the last state, if there is one; return its step and the rows seen so far."""
    if not path.exists():
        return 0, {}
    try:
        state = torch.load(path, map_location=learner.device, weights_only=True)
        learner.net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        return int(state["step"]), dict(state["seen"])
    except Exception as error:  # a file that something else wrote may hold anything
        why = str(error).partition("\n")[0]
        raise UserError(f"{path}: training cannot go on from this: {why}; remove it to begin again") from None
