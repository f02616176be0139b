"""The weight files of planner and visualizer: int8, with what is needed to build the network again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import UserError
from weft_tabletop.tiny import weights
from weft_tabletop.weaver import words
from weft_tabletop.weaver.train.planner_net import NetSize, Planner
from weft_tabletop.weaver.train.visualizer_net import Visualizer
from weft_tabletop.weaver.world import TableWorld


def save_net(
    path: Path,
    net: "Planner | Visualizer",
    world: TableWorld,
    tensors: Mapping[str, Tensor] | None = None,
    **facts: str,
) -> None:
    """Write a network, or these `tensors` of it."""
    named = net.state_dict() if tensors is None else tensors
    arrays = {name: tensor.detach().float().cpu().numpy() for name, tensor in named.items()}
    described = {
        "model": f"weft tabletop {type(net).__name__.lower()}",
        "vocabulary": str(words.SIZE),
        "world": world.name,
        "width": str(net.size.width),
        "layers": str(net.size.layers),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    weights.save(part, arrays, {**described, **facts})
    part.replace(path)


def load_planner(path: Path, world: TableWorld, device: str) -> Planner:
    """Build a planner with the weights as they ship."""
    arrays, facts = weights.load(path)
    planner = Planner(_read_size(path, facts, world))
    _fill(planner, arrays)
    return planner.to(device)


def load_visualizer(path: Path, world: TableWorld, device: str) -> Visualizer:
    arrays, facts = weights.load(path)
    visualizer = Visualizer(_read_size(path, facts, world), arrays["order.weight"].shape[1])
    _fill(visualizer, arrays)
    return visualizer.to(device)


def _fill(net: nn.Module, arrays: dict[str, Any]) -> None:
    net.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})


def _read_size(path: Path, facts: dict[str, str], world: TableWorld) -> NetSize:
    if facts.get("vocabulary") != str(words.SIZE) or facts.get("world") != world.name:
        raise UserError(
            f"{path}: these weights are of world {facts.get('world')!r} with {facts.get('vocabulary')} tokens, "
            f"not of {world.name!r} with {words.SIZE}"
        )
    return NetSize(int(facts["width"]), int(facts["layers"]), len(world.cells))
