"""Ray whose processes and machines leave while they work: workers, replicas, the keeper, a node with all that is on it; and
a Ray that somebody else runs on this machine. What comes of it is what a command makes that nobody disturbs.

The cluster is two addresses of this machine, as in `tests/local/test_ray.py`.
"""

import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fuzz import ROOT, Broken
from toy import toy_records, write_weave

PATIENCE_S = 600.0
HERE = ROOT / "tests" / "building"
MARK = "WEFT_ATTACK_NODE"  # in the environment of all that a node starts
SEEDS = 24
MODELS = f"""
import sys, time
sys.path[:0] = [{str(HERE)!r}]
import os
os.environ["WEFT_TEST_CALLS"] = {{calls!r}}
import players

class Writer(players.Writer):
    def __call__(self, messages, want):
        time.sleep(0.05)
        return super().__call__(messages, want)

class Painter(players.Painter):
    def __call__(self, messages, want):
        time.sleep(0.05)
        return super().__call__(messages, want)

class Speaker:
    name, version, batch_size = "speaker", "1", 2

    def batch(self, requests):
        players._note("batch")
        time.sleep(0.5)
        return [f"I read {{{{len(str(one.messages))}}}} letters." for one in requests]
"""


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    """`count` events, each in a build or a run of its own."""
    done: Counter[str] = Counter()
    kinds = list(EVENTS)
    chance.shuffle(kinds)
    with Cluster(folder).up() as cluster:
        work = Work(cluster, folder)
        for number in range(count):
            kind = kinds[number % len(kinds)]
            try:
                EVENTS[kind](work, folder / f"{number}", chance)
            except Broken as broken:
                raise Broken(f"{kind}: {broken}") from None
            done[kind] += 1
    return done


def until(what: str, look: Callable[[], Any], running: "subprocess.Popen[str] | None" = None) -> Any:
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:
        ended = running is not None and running.poll() is not None
        with suppress(OSError):  # a file, or a process, that is not there yet or any more
            if found := look():
                return found
        if ended and running is not None:
            out, err = running.communicate()
            raise Broken(f"the command ended before this: {what}: {out or ''} {err or ''}")
        time.sleep(0.02)
    raise Broken(f"this did not come: {what}")


def processes_with(mark: str, title: str = "") -> list[int]:
    """The processes that were started with this in their environment, by what they call themselves."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            named = (entry / "cmdline").read_bytes().startswith(title.encode())
            if named and mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def kill(processes: list[int], number: int = signal.SIGKILL) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


class Cluster:
    """Two nodes: the first one is the head, the second one may leave and come back."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as held:
            held.bind(("127.0.0.2", 0))
            self.address = f"127.0.0.2:{held.getsockname()[1]}"
        self._folder = folder
        self.mark = f"{folder}"
        token = folder / "token"
        token.write_text(secrets.token_hex(32))
        self.environment = {
            **os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": str(folder), "RAY_health_check_period_ms": "500", "RAY_health_check_initial_delay_ms": "500",
            "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        }  # fmt: skip

    @contextmanager
    def up(self) -> Iterator["Cluster"]:
        try:
            self._start(1, "--head", f"--port={self.address.rpartition(':')[2]}", "--include-dashboard=false")
            self.start_second()
            yield self
        finally:
            for node in (2, 1):
                kill(processes_with(f"{MARK}={self.mark}-{node}"))

    def start_second(self) -> None:
        self._start(2, f"--address={self.address}")

    def leave_second(self) -> None:
        """The second node ends at once, with all that is on it."""
        kill(processes_with(f"{MARK}={self.mark}-2"))

    def _start(self, node: int, *words: str) -> None:
        few = ["--block", "--num-cpus=2", "--num-gpus=0", "--object-store-memory=100000000"]
        log = self._folder / f"node-{node}.log"
        with log.open("w") as file:
            command = [
                str(Path(sys.executable).parent / "ray"),
                "start",
                f"--node-ip-address=127.0.0.{node + 1}",
                *words,
            ]
            environment = {**self.environment, MARK: f"{self.mark}-{node}"}
            running = subprocess.Popen([*command, *few], stdout=file, stderr=file, env=environment, text=True)
        until(f"node {node}", lambda: "Ray runtime started" in log.read_text(), running)


class Work:
    """Commands, and what comes of them when nobody disturbs them."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.log = folder / "calls"
        self.models = folder / "models.py"
        self.models.write_text(MODELS.format(calls=str(self.log)))
        self.data = write_weave(folder / "data", toy_records())
        self.calm_build = self.files(self.finish(self.build(folder / "calm"), folder / "calm"))
        self.calm_run = self.table(
            self.finish(self.run(f"{self.models}:Speaker", folder / "calm-run"), folder / "calm-run")
        )

    def build(self, out: Path, *more: str) -> list[str]:
        players = ["--writer", f"{self.models}:Writer", "--painter", f"{self.models}:Painter"]
        words = ["build", f"{HERE / 'recipes.py'}:Pairs", "--part-size", "8", "--no-preflight", *players]
        return [*words, "--seeds", str(SEEDS), "--out", str(out), *more]

    def run(self, model: str, home: Path, *more: str) -> list[str]:
        return [
            "run",
            "weave",
            "--data",
            str(self.data),
            "--model",
            model,
            "--judge",
            "constant/max",
            "--home",
            str(home),
            *more,
        ]

    def start(self, words: list[str], **more: str) -> "subprocess.Popen[str]":
        self.log.write_text("")
        return subprocess.Popen(
            [sys.executable, "-m", "weft", *words], env={**self.cluster.environment, **more}, cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def end(self, running: "subprocess.Popen[str]", *codes: int) -> str:
        try:
            out, err = running.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            running.kill()
            raise Broken("the command hangs") from None
        if running.returncode not in codes or "Traceback" in err:
            raise Broken(f"exit code {running.returncode}: {out[-500:]} {err[-2500:]}")
        return err

    def finish(self, words: list[str], result: Path) -> Path:
        self.end(self.start(words), 0)
        return result

    def calls(self, count: int, running: "subprocess.Popen[str]") -> None:
        until(f"{count} calls", lambda: len(self.log.read_text().splitlines()) >= count, running)

    def files(self, out: Path) -> dict[str, bytes]:
        found = [*out.glob("parts/*"), *out.glob("imgs/*/*"), out / "test.json", out / "build.json"]
        made = {str(file.relative_to(out)): file.read_bytes() for file in found}
        return {name: data.replace(str(out).encode(), b"OUT") for name, data in made.items()}

    def table(self, home: Path) -> list[str]:
        from weft.benchmarks.base import load_benchmark
        from weft.results.run import Run
        from weft.store.journal import Journal

        journal = Journal(home / "journal.sqlite", readonly=True)
        try:
            (only,) = journal.runs()
        finally:
            journal.close()
        run = Run.from_home(home, only.id, load_benchmark("weave"))
        return sorted(f"{turn.sample} {turn.turn} {turn.reply.outcome} {turn.reply.text}" for turn in run.turns)

    def check_build(self, out: Path) -> None:
        if self.files(out) != self.calm_build:
            raise Broken("the files are not those of a build that was left alone")


def worker_leaves(work: Work, out: Path, chance: random.Random) -> None:
    running = work.start(work.build(out, "--ray", "2", "--address", work.cluster.address))
    work.calls(chance.randrange(5, 60), running)
    workers = until("a worker", lambda: ray_processes(work, "ray::Worker"), running)
    kill([chance.choice(workers)])
    work.end(running, 0)
    work.check_build(out)


def keeper_leaves(work: Work, out: Path, chance: random.Random) -> None:
    running = work.start(work.build(out, "--ray", "2", "--address", work.cluster.address))
    work.calls(chance.randrange(5, 60), running)
    kill(until("the keeper", lambda: ray_processes(work, "ray::Keeper"), running))
    err = work.end(running, 1)
    if "run the same command again" not in err:
        raise Broken(f"it does not say what to do: {err[-1000:]}")
    work.end(work.start(work.build(out, "--ray", "2", "--address", work.cluster.address)), 0)
    work.check_build(out)


def node_leaves_a_build(work: Work, out: Path, chance: random.Random) -> None:
    running = work.start(work.build(out, "--ray", "3", "--address", work.cluster.address))
    work.calls(chance.randrange(5, 60), running)
    work.cluster.leave_second()
    work.end(running, 0)
    work.check_build(out)
    work.cluster.start_second()


def node_leaves_a_batch(work: Work, home: Path, chance: random.Random) -> None:
    """Each node has one replica: the other one goes on alone, for nothing is free for a second one."""
    where = [
        "--replicas",
        "2",
        "--cpus-each",
        "2",
        "--gpus-each",
        "0",
        "--address",
        work.cluster.address,
        "--port",
        "0",
    ]
    server = work.start(["serve", f"{work.models}:Speaker", *where, "--home", f"{home}-server"])
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        if not address:
            work.end(server, 0)
        running = work.start(work.run(f"served/models@{address}", home))
        work.calls(chance.randrange(1, 4), running)
        work.cluster.leave_second()
        work.end(running, 0)
    finally:
        server.send_signal(signal.SIGINT)
        work.end(server, 0, 130)
    if work.table(home) != work.calm_run:
        raise Broken("the replies are not those of a run that was left alone")
    work.cluster.start_second()


def stopped_worker_is_left(work: Work, out: Path, chance: random.Random) -> None:
    """One that hangs with all that it has cannot keep the command from ending when it is asked to."""
    running = work.start(work.build(out, "--ray", "2", "--address", work.cluster.address))
    work.calls(chance.randrange(5, 60), running)
    workers = until("a worker", lambda: ray_processes(work, "ray::Worker"), running)
    kill(workers, signal.SIGSTOP)
    running.send_signal(signal.SIGINT)
    try:
        work.end(running, 1, 130)
    finally:
        kill(workers)
    work.end(work.start(work.build(out)), 0)
    work.check_build(out)


def another_ray_is_there(work: Work, out: Path, chance: random.Random) -> None:
    """A Ray of the command's own leaves the one alone that its environment names."""
    before = sorted(processes_with(f"{MARK}={work.cluster.mark}-1"))
    running = work.start(work.build(out, "--ray", "2"), RAY_ADDRESS=work.cluster.address)
    work.calls(20, running)
    if ray_processes(work, "ray::Worker"):
        raise Broken("a worker is in the Ray of somebody else")
    work.end(running, 0)
    work.check_build(out)
    if not set(before) <= set(processes_with(f"{MARK}={work.cluster.mark}-1")):
        raise Broken("processes of somebody else's Ray have ended")


def ray_processes(work: Work, title: str) -> list[int]:
    return [one for node in (1, 2) for one in processes_with(f"{MARK}={work.cluster.mark}-{node}", title)]


EVENTS: dict[str, Callable[[Work, Path, random.Random], None]] = {
    "a worker leaves": worker_leaves,
    "the keeper leaves": keeper_leaves,
    "a node leaves during a build": node_leaves_a_build,
    "a node leaves during a batch": node_leaves_a_batch,
    "workers hang, and the command is ended": stopped_worker_is_left,
    "another Ray is there": another_ray_is_there,
}
