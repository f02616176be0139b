"""`weft models try`: the results of the probes, in a fixed order, and the images as files."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.calls.prices import find_price
from weft.calls.probe import PROBES, ProbeResult, probe_endpoint
from weft.cli.terminal import say
from weft.evaluation.event_loop import run_in_loop
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.workspace import Workspace, open_journal

STATES = {True: "works", False: "FAILS", None: "not asked"}


def try_endpoint(name: str, options: Mapping[str, Any], home: Path) -> None:
    """Probe a model, print each result, and end the program."""
    workspace = Workspace(home)
    endpoint = resolve_endpoint(name, workspace.blobs, options, workspace.settings)
    say(f"{endpoint.name} at {endpoint.address}")
    if endpoint.missing_setup:
        say(f"note: {endpoint.missing_setup}")
    folder = workspace.home / "tries" / re.sub(r"[^A-Za-z0-9.-]+", "-", endpoint.name)
    printer = OrderedPrinter(folder, workspace.blobs)
    journal = open_journal(workspace.home, write=True)
    price = find_price(endpoint, workspace.settings.get("prices", {}))
    results = run_in_loop(probe_endpoint(endpoint, workspace.blobs, journal, price, printer.add))
    if any(result.works is False for result in results):
        sys.exit(1)
    sys.exit(0)


class OrderedPrinter:
    """Prints results in the order of PROBES, whichever is done first."""

    def __init__(self, folder: Path, blobs: Blobs) -> None:
        self._folder = folder
        self._blobs = blobs
        self._waiting: dict[str, ProbeResult] = {}
        self._printed = 0

    def add(self, result: ProbeResult) -> None:
        self._waiting[result.name] = result
        while self._printed < len(PROBES) and PROBES[self._printed] in self._waiting:
            self._print(self._waiting[PROBES[self._printed]])
            self._printed += 1

    def _print(self, result: ProbeResult) -> None:
        line = f"  {result.name:<30} {STATES[result.works]:<10} {result.summary}"
        spent = _describe_spent(result)
        if spent:
            line += f" ({spent})"
        say(line, flush=True)
        if result.reply is None:
            return
        stem = result.name.split(",")[0].replace(" ", "-")
        for number, image in enumerate(result.reply.images):
            suffix = image.media_type.removeprefix("image/")
            file_name = f"{stem}.{suffix}"
            if number:
                file_name = f"{stem}-{number}.{suffix}"
            path = self._folder / file_name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._blobs.read(image))
            say(f"  {'':<30} {'':<10} {path}")


def _describe_spent(result: ProbeResult) -> str:
    """Return the time, the tokens and the cost of a probe, as far as they are known."""
    parts: list[str] = []
    if result.seconds:
        parts.append(f"{result.seconds:.1f} s")
    usage = result.reply.usage if result.reply is not None else None
    if usage is not None and (usage.tokens_in or usage.tokens_out):
        parts.append(f"{usage.tokens_in} + {usage.tokens_out} tokens")
    if usage is not None and usage.cost:
        parts.append(f"${usage.cost:.4f}")
    return ", ".join(parts)
