"""Whatever happens to a run on its way, its table is that of a run that was left alone: random sequences of kills, shards
in homes of their own, merges, removals, prunings, budgets that end it, and changes of its judge."""

import contextlib
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from fuzz import ROOT, Broken
from fuzz.commands import Command, run_command
from fuzz.data import all_of, judge_at

SAMPLES = 4
JUDGES = ("judge", "other-judge")
PRICES = "\n".join(f"[prices.{name}]\nin = 1.0\nout = 4.0\nimage = 0.01\n" for name in ("model", *JUDGES))
STEPS = 8  # at most, before the run is left to end


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    data = {name: path for name, (_, path) in all_of(folder / "data", SAMPLES, chance.randrange(10**6)).items()}
    (folder / "weft.toml").write_text(PRICES)
    with mock() as url:
        right: dict[tuple[str, str], str] = {}
        for number in range(count):
            name = list(data)[number % len(data)]
            seed = chance.randrange(10**9)
            sequence = Sequence(random.Random(seed), folder, name, data[name], url, done)
            for judge in JUDGES:
                if (name, judge) not in right:
                    right[name, judge] = sequence.finish(f"alone-{name}", judge)
            sequence.play()
            for judge in JUDGES:
                if sequence.finish("main", judge) != right[name, judge]:
                    raise Broken(f"{name}, {judge}: the table differs after {', '.join(sequence.log)} (seed {seed})")
            checked = run_command(["journal", "check", "--home", "main"], folder)
            if checked.code:
                raise Broken(f"{name}: after {', '.join(sequence.log)}: {checked.out}")
            for home in folder.glob("main*"):
                shutil.rmtree(home)
            done["sequences"] += 1
    return done


@contextlib.contextmanager
def mock() -> Iterator[str]:
    """Serve models and judges whose answers follow from the request; yield their address."""
    command = [sys.executable, "-m", "fuzz.mock", "--latency", "0.01"]
    server = subprocess.Popen(command, cwd=ROOT / "tests", stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.wait()


class Sequence:
    """What happens to one run: `main` is its home, `main-N` are those of shards."""

    def __init__(
        self, chance: random.Random, folder: Path, name: str, data: Path, url: str, done: Counter[str]
    ) -> None:
        self._chance = chance
        self._folder = folder
        self._base = ["run", name, "--data", str(data), "--model", f"openai-chat/model@{url}", "--concurrency", "4"]
        self._name = name
        self._url = url
        self._done = done
        self.log: list[str] = []

    def play(self) -> None:
        """Do a random number of steps."""
        steps: dict[str, Callable[[], None]] = {
            "kill": self._kill,
            "shard": self._shard,
            "merge": self._merge,
            "prune": self._prune,
            "remove": self._remove,
            "budget": self._budget,
            "judge": self._judge_again,
            "two at once": self._two_at_once,
        }
        for _ in range(self._chance.randint(3, STEPS)):
            name = self._chance.choices(list(steps), (4, 3, 3, 2, 1, 2, 1, 1))[0]
            self.log.append(name)
            steps[name]()
            self._done[name] += 1

    def finish(self, home: str, judge: str) -> str:
        """Run to the end, and return the table."""
        ended = run_command(self._words(home, judge), self._folder)
        if ended.code:
            raise Broken(f"after {', '.join(self.log)}: exit code {ended.code}: {ended.err[-800:]}")
        return run_command(["report", "last", "-f", "csv", "--home", home], self._folder).out

    def _words(self, home: str, judge: str = "", *more: str) -> list[str]:
        judge = judge or self._chance.choice(JUDGES)
        return [*self._base, "--judge", judge_at(self._url, self._name, judge), "--home", home, *more]

    def _some_home(self) -> str:
        homes = sorted(path.name for path in self._folder.glob("main*") if (path / "journal.sqlite").exists())
        return self._chance.choice(homes or ["main"])

    def _run_and_kill(self, words: list[str]) -> None:
        command = Command(words, self._folder)
        time.sleep(self._chance.uniform(0.02, 0.5))
        self._done["kill -9"] += command.kill()

    def _kill(self) -> None:
        self._run_and_kill(self._words(self._some_home()))

    def _shard(self) -> None:
        count = self._chance.choice([2, 3])
        home = self._chance.choice(["main", "main-1", "main-2"])
        words = self._words(home, "", "--shard", f"{self._chance.randint(1, count)}/{count}")
        if self._chance.random() < 0.3:
            self._run_and_kill(words)
        else:
            self._end(words)

    def _merge(self) -> None:
        others = sorted(path.name for path in self._folder.glob("main-*") if (path / "journal.sqlite").exists())
        if others:
            words = ["journal", "merge", *others, "--home", "main"]
            if self._chance.random() < 0.3:
                self._run_and_kill(words)
            else:
                self._end(words)

    def _prune(self) -> None:
        home = self._some_home()
        words = ["journal", "prune", "--yes", "--home", home]
        if not (self._folder / home / "journal.sqlite").exists():
            return
        if self._chance.random() < 0.3:
            self._run_and_kill(words)
        else:
            self._end(words)

    def _remove(self) -> None:
        home = self._some_home()
        if (self._folder / home / "journal.sqlite").exists():
            self._end(["runs", "rm", "last", "--yes", "--home", home])

    def _budget(self) -> None:
        self._end(self._words(self._some_home(), "", "--budget", str(self._chance.choice([0.0, 0.001, 0.02, 0.1]))))

    def _judge_again(self) -> None:
        home = self._some_home()
        if (self._folder / home / "journal.sqlite").exists():
            judge = judge_at(self._url, self._name, self._chance.choice(JUDGES))
            self._end(["judge", "again", "last", "--judge", judge, "--home", home])

    def _two_at_once(self) -> None:
        """Prune, or merge, while the run goes on."""
        home = self._some_home()
        folder = self._folder / "beside"
        folder.mkdir(exist_ok=True)
        command = Command(self._words(home), self._folder)
        if (self._folder / home / "journal.sqlite").exists():
            run_command(["journal", "prune", "--yes", "--home", str(self._folder / home)], folder)
        command.end()

    def _end(self, words: list[str]) -> None:
        run_command(words, self._folder)
