"""Keys of six shapes, echoed in every way by a server to every provider of the registry: found nowhere."""

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from test_keys import ECHOES, KEYS

from fuzz import ROOT, Broken
from wires import http_models


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    words = [sys.executable, "-m", "pytest", "-q", "-n0", "-x", "-p", "no:cacheprovider", "tests/hostile/test_keys.py"]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "WEFT_EVERY_PROVIDER": "1"}
    )
    if done.returncode:
        raise Broken(done.stdout[-3000:])
    providers = len(http_models("http://x"))
    return Counter({"shapes of keys": len(KEYS), "ways of echoing": len(ECHOES), "providers": providers})
