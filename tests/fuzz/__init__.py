"""The attack: weft against datasets, replies, models, servers, files and kills that are made to break it.

`make attack` runs all of it in an hour or two and prints seeds and counts. Benchmarks and providers are taken in through their
registries."""

import logging
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "hostile")]

Part = Callable[[random.Random, int, Path], Counter[str]]


class Broken(Exception):
    """weft did what it must never do."""


logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # clients that are killed are what this is about
