"""Replicas on Ray Serve, killed and counted. Every start of Ray takes seconds, so each test does as much as it can with
one."""

import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from waiting import HANGS, until
from weft.benchmarks.base import load_benchmark
from weft.errors import UserError
from weft.results.run import Run
from weft.store.journal import Journal

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is an extra (ray)")
Tiny = Callable[[str], Path]
WEFT = [sys.executable, "-m", "weft"]
MINE = '''
import itertools, os, pathlib, time
from PIL import Image

def held(name):
    """Where there is a folder for it: say who is here, in files with numbers, and go on once so many may."""
    if not os.environ.get("MINE_HELD"):
        return
    place = pathlib.Path(os.environ["MINE_HELD"])
    for number in itertools.count():
        try:
            (place / f"{name}-{number}").open("x").write(str(os.getpid()))
            break
        except FileExistsError:
            continue
    while number >= len(list(place.glob(f"may-{name}-*"))):
        time.sleep(0.02)

class Model:
    """Slow, and the same whoever answers."""
    name, version, batch_size = "mine", "1", 2

    def __init__(self):
        print("what a model prints is in nobody's way " * 100)
        if os.environ.get("MINE_FAILS"):
            raise ValueError("the weights are not there")
        if os.environ.get("MINE_STARTS_HELD"):
            held("start")

    def __call__(self, messages, want, draw):
        return self.answer(messages, want, draw)

    def answer(self, messages, want, draw):
        said = "".join(part for _, parts in messages for part in parts if isinstance(part, str))
        return f"I read {len(said)} letters." if want == "text" else Image.new("RGB", (8, 8), (len(said) % 256, draw, 9))

    def batch(self, requests):
        held("batch")
        return [self.answer(one.messages, one.want, one.draw) for one in requests]
'''


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "HF_HUB_OFFLINE": "1", **more}


@contextmanager
def server(place: Path, *arguments: str, **more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`weft serve`, ready; gives its process and its address."""
    command = [*WEFT, "serve", *arguments, "--port", "0", "--home", str(place / "server")]
    log = (place / f"server-{time.monotonic_ns()}.log").open("w+")
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=place, env=environment(**more)
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        log.seek(0)
        assert address.startswith("http://127.0.0.1:"), log.read()
        yield process, address
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(HANGS)
        finally:
            process.kill()
            log.close()


def run_command(data: Path, model: str, home: Path, *more: str, benchmark: str = "weave") -> list[str]:
    return [
        *WEFT,
        "run",
        benchmark,
        "--data",
        str(data),
        "--model",
        model,
        "--judge",
        "constant/max",
        "--home",
        str(home),
        *more,
    ]


def finished(command: list[str], place: Path, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=environment(**more), timeout=HANGS)
    assert done.returncode == code, done.stderr
    return done


def stored(home: Path) -> Run:
    journal = Journal(home / "journal.sqlite", readonly=True)
    try:
        (only,) = journal.runs()
    finally:
        journal.close()
    return Run.from_home(home, only.id, load_benchmark("weave"))


def outcome(home: Path) -> tuple[str, Any, list[Any]]:
    """A run's name, its numbers, and what was answered."""
    run = stored(home)
    turns = sorted(run.turns, key=lambda turn: (turn.sample, turn.turn))
    return run.id, run.table().rows, [turn.reply.parts for turn in turns]


def numbers(home: Path) -> tuple[list[Any], list[Any]]:
    """The same without names: a server's word about its model does not make it the model itself."""
    _, rows, replies = outcome(home)
    return [row.cells for row in rows], replies


def left_behind(mark: str) -> tuple[set[str], set[Path]]:
    """Processes that were started with this in their environment, and folders of Ray's whose command is no more."""
    processes: set[str] = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                processes.add((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:80])
        except OSError:
            continue
    folders = Path(tempfile.gettempdir()).glob("weft-ray-*")
    return processes, {one for one in folders if not Path(f"/proc/{one.name.split('-')[2]}").exists()}


def metrics(address: str) -> str:
    with urllib.request.urlopen(f"{address.removesuffix('/v1')}/metrics", timeout=HANGS) as came:
        return came.read().decode()


def replicas_of(address: str) -> list[int]:
    return sorted(
        {int(number) for number in re.findall(r'weft_replica_in_flight\{replica="[^:]*:(\d+)"\}', metrics(address))}
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="it looks for processes in /proc")
def test_one_command_serves_runs_and_leaves_nothing_behind(place: Path, tables: Path):
    mark = f"{place}-mark"
    finished(run_command(tables, "mine.py:Model", place / "single", "--replicas", "1"), place)
    done = finished(run_command(tables, "mine.py:Model", place / "many", "--replicas", "2"), place, MARK=mark)
    assert "2 replicas ready" in done.stderr or "of 2 replicas" in done.stderr
    finished(run_command(tables, "mine.py:Model", place / "one"), place)
    assert outcome(place / "many") == outcome(place / "one") == outcome(place / "single")
    # Ray's agents see later that their node is gone
    until("nothing is left behind", lambda: left_behind(mark) == (set(), set()))


def test_a_replica_is_killed_then_all_of_it_and_the_table_is_the_same(place: Path, tables: Path):
    finished(run_command(tables, "mine.py:Model", place / "whole"), place)
    held = place / "held"
    held.mkdir()
    vouched = ("--model-opt", "version=1")  # at another port as well
    with server(place, "mine.py:Model", "--replicas", "2", MINE_HELD=str(held)) as (process, address):
        model = f"served/mine@{address}"
        first = subprocess.Popen(
            run_command(tables, model, place / "shot"), cwd=place, env=environment(), stderr=subprocess.PIPE, text=True
        )
        began = until("a replica with a batch that it does not finish", lambda: list(held.glob("batch-*")), first)
        victim = int(until("its number", began[0].read_text))
        os.kill(victim, signal.SIGKILL)
        more(held, 1000)
        _, told = first.communicate(timeout=HANGS)
        assert first.returncode == 0, told
        assert re.search(r"\(([1-9]\d*) retries\)", told), told
        assert 'status="500"' in metrics(address)
        assert numbers(place / "shot") == numbers(place / "whole")
        # then the head, with all that it has started, while calls are in flight: three batches come back, and no more
        for one in held.glob("may-*"):
            one.unlink()
        more(held, len(list(held.glob("batch-*"))) + 3)
        run = run_command(tables, model, place / "beheaded", *vouched)
        second = subprocess.Popen(run, cwd=place, env=environment(), stderr=subprocess.PIPE, text=True)
        until("three answers in the journal", lambda: _answers(place / "beheaded") >= 3, second)
        process.kill()
        _, told = second.communicate(timeout=HANGS)
        assert second.returncode == 1 and "cannot reach" in told, told
        kept = _answers(place / "beheaded")
        assert 3 <= kept < len(stored(place / "whole").turns)
    with server(place, "mine.py:Model", "--replicas", "2") as (_, address):
        finished(run_command(tables, f"served/mine@{address}", place / "beheaded", *vouched), place)
    assert numbers(place / "beheaded") == numbers(place / "whole")
    assert _answers(place / "beheaded") == len(stored(place / "whole").turns)  # what had come back was not asked again


def more(held: Path, count: int) -> None:
    """So many batches may be worked on, those before included."""
    for number in range(count):
        (held / f"may-batch-{number}").touch()


def _answers(home: Path) -> int:
    try:
        journal = Journal(home / "journal.sqlite", readonly=True)
    except UserError:  # not there yet, or just being made
        return 0
    try:
        (row,) = journal._rows("SELECT count(*) FROM calls WHERE outcome = 'answered' AND role = 'model'")
        return int(row[0])
    finally:
        journal.close()


def test_what_can_never_be_is_said_at_once(place: Path):
    done = finished([*WEFT, "serve", "mine.py:Model", "--replicas", "2", "--gpus-each", "7", "--port", "0"], place, 2)
    assert re.search(r"2 replicas with 7 GPUs each want 14; this machine has \d", done.stderr)
    done = finished([*WEFT, "serve", "mine.py:Model", "--replicas", "2", "--port", "0"], place, 2, MINE_FAILS="1")
    assert "the weights are not there" in done.stderr
    done = finished([*WEFT, "serve", "mine.py:Model", "--address", "127.0.0.1:9", "--port", "0"], place, 2)
    assert "no Ray cluster answers at 127.0.0.1:9" in done.stderr


def test_a_replica_that_has_another_model_has_no_part_in_the_answers(place: Path):
    (place / "other.py").write_text("import os\n" + MINE + "\n\nModel.version = str(os.getpid())\n")
    done = finished([*WEFT, "serve", "other.py:Model", "--gpus-each", "0", "--port", "0"], place, 2)
    assert "has another model under this name" in done.stderr


def test_one_and_four_replicas_have_one_table(place: Path, tiny: Tiny, tables: Path):
    """A model that draws by chance, in batches of whoever comes together."""
    options = ("--model-opt", "seed=7", "--model-opt", "max_tokens=6")
    for many in ("1", "4"):
        with server(place, f"hf/{tiny('janus')}", "--replicas", many, *options) as (_, address):
            vouched = ("--model-opt", "version=1")
            finished(run_command(tables, f"served/janus@{address}", place / many, *vouched), place)
    one, four = outcome(place / "1"), outcome(place / "4")
    assert one == four


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.2", 0))
        return held.getsockname()[1]


def scripts() -> list[str]:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "clusters.md").read_text()
    return re.findall(r"```bash\n(#!/bin/bash.*?)```", page, re.DOTALL)


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is this machine on Linux alone")
def test_the_slurm_script_and_two_nodes_of_a_cluster(place: Path, tables: Path):
    """As documented, with stand-ins for Slurm's own programs: its machines are addresses of this one."""
    program(place / "bin" / "scontrol", "#!/bin/bash\nprintf '127.0.0.2\\n127.0.0.3\\n'\n")
    few = "--object-store-memory=100000000 --num-cpus=2 --num-gpus=0"
    program(
        place / "bin" / "srun",
        f'#!/bin/bash\nwhile [[ "$1" == --* ]]; do shift; done\nexec "$@" {few} > "$PWD/node-$$.log" 2>&1\n',
    )
    started = "$(grep -l 'Ray runtime started' node-*.log 2> /dev/null | wc -l)"
    nodes_are_up = f'until [ "{started}" -ge "$(wc -l < waits)" ]; do {shutil.which("sleep")} 0.2; done'
    # after each it waits for one more
    program(place / "bin" / "sleep", f"#!/bin/bash\necho >> waits\n{nodes_are_up}\n")
    program(place / "bin" / "weft", f'#!/bin/bash\nexec {sys.executable} -m weft "$@" --home "$PWD/slurm"\n')
    port, mark = free_port(), f"{place}-mark"
    job = {
        "MARK": mark,
        "PATH": f"{place / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        **{"SLURM_JOB_NODELIST": "two", "SLURM_SUBMIT_DIR": str(place), "PORT": str(port)},
        **{"REPLICAS": "2", "GPUS_EACH": "0", "DATA": str(tables), "MODEL": "mine.py:Model", "JUDGE": "constant/max"},
    }
    log = (place / "job.log").open("w+")
    running = subprocess.Popen(
        ["bash", "-c", scripts()[0]], env=environment(**job), stdout=log, stderr=log, start_new_session=True
    )
    try:
        code = running.wait(HANGS)
        log.seek(0)
        told = log.read()
        assert code == 0 and "of 2 replicas ready" in told, told
        finished(run_command(tables, "mine.py:Model", place / "here"), place)
        assert outcome(place / "slurm") == outcome(place / "here")
        cluster = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(place / ".ray-token")}
        # two CPUs each: one on either machine
        where = ["--replicas", "2", "--cpus-each", "2", "--address", f"127.0.0.2:{port}"]
        with server(place, "mine.py:Model", *where, **cluster) as (_, address):
            finished(run_command(tables, f"served/mine@{address}", place / "cluster"), place)
            assert len(replicas_of(address)) == 2
        assert numbers(place / "cluster") == numbers(place / "here")
        socket.create_connection(("127.0.0.2", port), 5).close()  # the cluster is its owner's, and still there
    finally:
        try:
            os.killpg(running.pid, signal.SIGTERM)
            until("the nodes have ended", lambda: not left_behind(mark)[0])
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            log.close()


def test_the_script_without_ray(place: Path, tables: Path):
    program(place / "bin" / "weft", f'#!/bin/bash\nexec {sys.executable} -m weft "$@" --home "$PWD/home-$1"\n')
    job = {"PATH": f"{place / 'bin'}:{os.environ['PATH']}", "SLURM_SUBMIT_DIR": str(place), "GPUS": "2"}
    job |= {"DATA": str(tables), "MODEL": "mine.py:Model", "JUDGE": "constant/max"}
    done = subprocess.run(
        ["bash", "-c", scripts()[1]], env=environment(**job), capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("requests; closing") == 2 and "served 0 requests" not in done.stderr
    finished(run_command(tables, "mine.py:Model", place / "here"), place)
    assert numbers(place / "home-run") == numbers(place / "here")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="it looks for processes in /proc")
@pytest.mark.parametrize("moment", ["a folder for Ray", "a node of Ray", "a replica that loads its model"])
def test_stopping_it_while_it_starts_leaves_nothing_behind(place: Path, moment: str):
    mark, held = f"{place}-mark", place / "held"
    held.mkdir()
    command = [*WEFT, "serve", "mine.py:Model", "--replicas", "2", "--port", "0"]
    told = environment(MARK=mark, MINE_HELD=str(held), MINE_STARTS_HELD="1")
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=place, env=told
    )
    looks: dict[str, Callable[[], Any]] = {
        "a folder for Ray": lambda: list(Path(tempfile.gettempdir()).glob(f"weft-ray-{process.pid}-*")),
        "a node of Ray": lambda: [one for one in left_behind(mark)[0] if "raylet" in one],
        "a replica that loads its model": lambda: list(held.glob("start-*")),
    }
    until(moment, looks[moment], process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=HANGS)
    assert process.returncode in (130, -signal.SIGINT) and "stack" not in said.lower(), said
    # Ray's agents see later that their node is gone
    until("nothing is left behind", lambda: left_behind(mark) == (set(), set()))
