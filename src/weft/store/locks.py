"""Which process works on a run: one at a time, which holds the run's lock file.

The lock ends with the process, however that ends; so a run in the state `running` whose lock nobody holds was killed. A
process forked meanwhile does not hold the lock: a model's worker may outlive the run.
"""

import contextlib
import fcntl
import glob
import os
import time
from collections.abc import Generator
from pathlib import Path

from msgspec.structs import replace

from weft.errors import UserError
from weft.store.records import RunRecord

SHARD = "."  # separates run and shard in the name of a lock file
TRIES = 10  # whoever only looks at a lock holds it for a moment
WAIT_S = 0.05
_held: set[int] = set()  # file descriptors of the locks that this process holds


def _release_in_child() -> None:
    """Close the locks in a forked child: a lock belongs to every process that has its file open."""
    for file in _held:
        with contextlib.suppress(OSError):
            os.close(file)
    _held.clear()


os.register_at_fork(after_in_child=_release_in_child)


@contextlib.contextmanager
def lock_run(home: Path, run: str, shard: str = "") -> Generator[None]:
    """Hold the lock of a run, or of one shard: different shards may run at the same time.

    Raises UserError if another process holds it: the same run twice at once would pay twice.
    """
    locks = home / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    _check_others(locks, run, shard)
    name = run
    if shard:
        name = f"{run}{SHARD}{shard.replace('/', '-of-')}"
    file = os.open(locks / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    _held.add(file)
    try:
        _acquire(file, run)
        os.ftruncate(file, 0)
        os.write(file, str(os.getpid()).encode())
        yield
    finally:
        if file in _held:
            _held.discard(file)
            os.close(file)


def _check_others(locks: Path, run: str, shard: str) -> None:
    """Raise UserError if the whole run is active while a shard is to start, or the other way round."""
    if shard:
        others = [locks / run]
        suffix = ""
    else:
        others = [file for file in _lock_files(locks, run) if file.name != run]
        suffix = ", in shards"
    if any(_is_held(file) for file in others):
        raise UserError(f"run {run} is going on in another process{suffix}; wait for it, or use another --home")


def _acquire(file: int, run: str) -> None:
    for tries_left in reversed(range(TRIES)):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if not tries_left:
                raise UserError(
                    f"run {run} is already going on in another process; wait for it, or use another --home"
                ) from None
            time.sleep(WAIT_S)


def with_actual_state(record: RunRecord, home: Path) -> RunRecord:
    """Return the record with the state that the locks show: a run may have been killed, or a shard may be active."""
    if record.state not in ("running", "part"):
        return record
    if any(_is_held(file) for file in _lock_files(home / "locks", record.id)):
        return replace(record, state="running")
    if record.state == "running":
        return replace(record, state="killed")
    return record


def find_active_run(home: Path) -> str:
    """Return the name of a run that is active in a home; empty if there is none."""
    locks = home / "locks"
    if not locks.is_dir():
        return ""
    return next((file.name for file in sorted(locks.iterdir()) if _is_held(file)), "")


def _lock_files(locks: Path, run: str) -> list[Path]:
    """Return the lock files of a run and of its shards."""
    return [locks / run, *sorted(locks.glob(f"{glob.escape(run)}{SHARD}*"))]


def _is_held(path: Path) -> bool:
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, ValueError, UnicodeError):
        return False
    except OSError:  # another process holds it
        return True
    return False
