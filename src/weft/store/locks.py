"""Who is at work on a run: one process at a time, which holds the run's lock file. The lock goes with the process,
however it ends; so a run that says it is running, while nobody holds its lock, was killed. A process that is forked off
meanwhile does not hold it: who works for a model may outlive the run."""

import contextlib
import fcntl
import glob
import os
import time
from collections.abc import Generator
from pathlib import Path

from msgspec.structs import replace

from weft.errors import UserError
from weft.store.journal import RunRecord

_held: set[int] = set()  # the files of the locks that this process holds


def _let_go() -> None:
    """In a child of a fork: a lock belongs to all who have its file open."""
    for file in _held:
        with contextlib.suppress(OSError):
            os.close(file)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)
SHARD = "."  # between a run and the shard of it, in the name of a lock
# somebody who only looks holds a lock for a moment
TRIES = 10
WAIT = 0.05


@contextlib.contextmanager
def lock_run(home: Path, run: str, shard: str = "") -> Generator[None]:
    """The same run twice at once would pay twice; shards of it may go on side by side."""
    locks = home / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    if shard:
        name = f"{run}{SHARD}{shard.replace('/', '-of-')}"
    else:
        name = run
    if shard:
        others = [locks / run]
    else:
        others = [file for file in _of(locks, run) if file.name != run]
    if any(_is_held(file) for file in others):
        raise UserError(
            f"run {run} is going on in another process{'' if shard else ', in shards'}; wait for it, or use another --home"
        )
    file = os.open(locks / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    _held.add(file)
    try:
        for left in reversed(range(TRIES)):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if not left:
                    raise UserError(
                        f"run {run} is already going on in another process; wait for it, or use another --home"
                    ) from None
                time.sleep(WAIT)
        os.ftruncate(file, 0)
        os.write(file, str(os.getpid()).encode())
        yield
    finally:
        if file in _held:
            _held.discard(file)
            os.close(file)


def with_actual_state(record: RunRecord, home: Path) -> RunRecord:
    """The record, with the state it is really in."""
    if record.state not in ("running", "part"):
        return record
    held = any(_is_held(file) for file in _of(home / "locks", record.id))
    return replace(record, state="running" if held else "killed" if record.state == "running" else record.state)


def _of(locks: Path, run: str) -> list[Path]:
    """The locks of a run and of its shards."""
    return [locks / run, *sorted(locks.glob(f"{glob.escape(run)}{SHARD}*"))]


def find_active_run(home: Path) -> str:
    """A run that is at work in a home, if there is one."""
    locks = home / "locks"
    if locks.is_dir():
        return next((file.name for file in sorted(locks.iterdir()) if _is_held(file)), "")
    return ""


def _is_held(file: Path) -> bool:
    try:
        with file.open() as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, ValueError, UnicodeError):
        return False
    except OSError:  # somebody holds it
        return True
    return False
