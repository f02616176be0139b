"""Machines on which weft may find itself: homes and folders that may not be written or read, clocks that jump, too few
files, too little memory, outputs that are full. Each command works, or says why not in one line; and the home is as
sound as before."""

import ctypes
import os
import random
import resource
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from fuzz import Broken
from fuzz.commands import run_command
from fuzz.homes import COMMANDS, build_home, lay_out, read_rows, words_of

MAY_TAKE_AWAY = {"runs rm", "judge again"}  # rows of the home that it is given
LONGEST_ERROR = 4  # lines, with the usage of a command
CLOCKS = [0.0, -1e9, 1e9, 4.2e9, 1e11, 2.0**31, 253402300800.0, 1e15, 9e18]
ENVIRONMENTS: list[dict[str, str]] = [
    {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "TERM": "dumb"},
    {"COLUMNS": "0", "LINES": "x"},
    {"COLUMNS": "-5"},
    {"COLUMNS": "999999999"},
    {"HOME": "/nonexistent", "TMPDIR": "/nonexistent", "XDG_CACHE_HOME": "/proc"},
    {"TZ": ":/etc/passwd", "LC_ALL": "xx_YY.klingon"},
    {"NO_COLOR": "\n", "FORCE_COLOR": "1", "WEFT_CONFIG": "/dev/null"},
]
Prepare = Callable[[Path, random.Random], Callable[[], None]]  # a home: what happens in the process of the command


def forget_root() -> None:
    """Be somebody whom modes of files hold for."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets) == 0:
        may_do_all = (1 << 1) | (1 << 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        sets[0] &= ~may_do_all & 0xFFFFFFFF
        libc.capset(header, sets)


def set_modes(folder: Path, of_folders: int, of_files: int) -> None:
    for path in [*sorted(folder.rglob("*"), reverse=True), folder]:
        path.chmod(of_folders if path.is_dir() else of_files)


def no_writing(home: Path, chance: random.Random) -> Callable[[], None]:
    set_modes(home, 0o555, 0o444)
    return forget_root


def no_reading(home: Path, chance: random.Random) -> Callable[[], None]:
    set_modes(home, *chance.choice([(0o755, 0o000), (0o444, 0o444), (0o000, 0o000), (0o755, 0o200)]))
    return forget_root


def one_locked_file(home: Path, chance: random.Random) -> Callable[[], None]:
    path = chance.choice(sorted(home.rglob("*")))
    path.chmod(chance.choice([0o000, 0o444, 0o555]))
    return forget_root


def no_room_to_work(home: Path, chance: random.Random) -> Callable[[], None]:
    work = home.parent / "work"
    for name in (".stdout", ".stderr"):
        (work / name).touch()
    work.chmod(0o555)
    return forget_root


def jumping_clock(home: Path, chance: random.Random) -> Callable[[], None]:
    clocks = [chance.choice(CLOCKS) for _ in range(chance.choice([1, 2, 5]))]
    own = random.Random(chance.random())

    def jump() -> None:
        def now() -> float:
            return own.choice(clocks) + own.random()

        time.time = now
        time.time_ns = lambda: int(now() * 1e9)

    return jump


def few_files(home: Path, chance: random.Random) -> Callable[[], None]:
    count = chance.randint(12, 48)
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def little_memory(home: Path, chance: random.Random) -> Callable[[], None]:
    more = chance.choice([2, 5, 10, 20, 40, 80]) * 1024**2

    def limit() -> None:
        status = Path("/proc/self/status")
        kilobytes = 100_000
        if status.exists():
            kilobytes = int(status.read_text().partition("VmData:")[2].split()[0])
        resource.setrlimit(resource.RLIMIT_DATA, (kilobytes * 1024 + more,) * 2)

    return limit


def odd_environment(home: Path, chance: random.Random) -> Callable[[], None]:
    values = chance.choice(ENVIRONMENTS)
    return lambda: os.environ.update(values)


def full_output(home: Path, chance: random.Random) -> Callable[[], None]:
    def redirect() -> None:
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        sys.stdout.reconfigure(line_buffering=chance.random() < 0.5)  # type: ignore[union-attr]

    return redirect


CONDITIONS: dict[str, Prepare] = {
    "a home that may not be written": no_writing,
    "a home that may not be read": no_reading,
    "one locked file": one_locked_file,
    "a working folder that may not be written": no_room_to_work,
    "a clock that jumps": jumping_clock,
    "few files": few_files,
    "little memory": little_memory,
    "an odd environment": odd_environment,
    "an output that is full": full_output,
}


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    sound = build_home(folder / "sound")
    right = read_rows(sound.home)
    names = list(CONDITIONS)
    for number in range(count):
        condition, command = names[number % len(names)], chance.choice(list(COMMANDS))
        work = folder / f"{number}"
        home = lay_out(sound, work)
        before = CONDITIONS[condition](home, chance)
        what = f"{condition}: weft {' '.join(words_of(command, sound, home))}"
        try:
            ended = run_command(words_of(command, sound, home), work / "deep" / "work", before=before)
        except Broken as broken:
            raise Broken(f"{condition}: {broken}") from None
        if ended.code == 2 and ended.err.count("\n") > LONGEST_ERROR:
            raise Broken(f"{what}: {ended.err[:1000]}")
        set_modes(work, 0o755, 0o644)
        rows = read_rows(home)
        for run, (_, found) in right.items():
            if command not in MAY_TAKE_AWAY and found - rows[run][1]:
                raise Broken(f"{what}: {run} lost {sorted(map(str, found - rows[run][1]))[:2]}")
        ended_after = run_command(words_of("runs", sound, home), work / "deep" / "work")
        if ended_after.code:
            raise Broken(f"{what}: the home cannot be used any more: {ended_after.err[:800]}")
        done[f"{condition}: exit code {ended.code}"] += 1
        shutil.rmtree(work)
    return done
