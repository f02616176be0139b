"""kill -9 at random moments, again and again, and then to the end: the table is that of a run that was left alone, and
no more calls were made again than were in flight."""

import json
import random
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path

from fuzz import ROOT, Broken
from fuzz.data import all_of, judge_at

FLIGHT = 8


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    found = all_of(folder / "kills", 10, chance.randrange(10**6))
    server = subprocess.Popen(
        [sys.executable, "-m", "fuzz.mock", "--latency", "0.02"], cwd=ROOT / "tests", stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        url = server.stdout.readline().strip()
        words = {
            name: [
                "run",
                name,
                "--data",
                str(data),
                "--model",
                f"openai-chat/model@{url}",
                "--judge",
                judge_at(url, name),
            ]
            for name, (_, data) in found.items()
        }
        right: dict[str, str] = {}
        usual: dict[
            str, Counter[str]
        ] = {}  # calls of a run that is left alone: some make the same request several times
        for name in found:
            before = _times(url)
            right[name] = _finished(words[name], folder / "kills" / f"{name}-left-alone")
            usual[name] = _times(url) - before
        sequence = 0
        while done["kills"] < count:
            name = list(found)[sequence % len(found)]
            home, before = folder / "kills" / f"{name}-{sequence}", _times(url)
            kills = min(chance.randint(1, 8), count - done["kills"])
            for _ in range(kills):
                process = _started(words[name], home)
                time.sleep(chance.uniform(0.3, 1.6))
                done["kills"] += process.poll() is None
                process.kill()
                process.wait()
            if _finished(words[name], home) != right[name]:
                raise Broken(f"{name}: the table differs after {kills} kills (sequence {sequence})")
            again = (_times(url) - before - usual[name]).total()
            if again > 2 * FLIGHT * kills:
                raise Broken(f"{name}: {again} calls were made again after {kills} kills")
            done["calls made again"] += again
            sequence += 1
        done["sequences"] = sequence
    finally:
        server.kill()
    return done


def _started(words: list[str], home: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "weft", *words, "--home", str(home), "--concurrency", str(FLIGHT)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _finished(words: list[str], home: Path) -> str:
    code = _started(words, home).wait(120)
    if code != 0:
        raise Broken(f"{words[1]}: exit code {code}")
    report = [sys.executable, "-m", "weft", "report", "last", "-f", "csv", "--home", str(home)]
    return subprocess.run(report, capture_output=True, text=True, check=True).stdout


def _times(url: str) -> Counter[str]:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/count") as answer:
        return Counter(json.loads(answer.read())["times"])
