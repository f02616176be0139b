"""Which processes work on a run and on a home.

- A run has one process at a time, which holds the run's lock file.
- A home has any number of processes that make calls (`use_home`), or one that removes, merges or repairs what is in it
  (`maintain_home`).

A lock ends with the process, however that ends; so a run in the state `running` whose lock nobody holds was killed. A
process forked meanwhile does not hold the lock: a model's worker may outlive the run. A home may come from anywhere: a
lock that is no regular file is ignored.
"""

import contextlib
import fcntl
import glob
import os
import stat
import time
from collections.abc import Generator
from pathlib import Path

from msgspec.structs import replace

from weft.errors import UserError
from weft.store.records import RunRecord, is_run_id

SHARD = "."  # separates run and shard in the name of a lock file
HOME_LOCK = "home.lock"
TRIES = 10  # whoever only looks at a lock holds it for a moment
WAIT_S = 0.05
MAINTENANCE_TRIES = 1200  # a minute: pruning and merging end by themselves
_held: set[int] = set()  # file descriptors of the locks that this process holds


def _release_in_child() -> None:
    """Close the locks in a forked child: a lock belongs to every process that has its file open."""
    for file in _held:
        with contextlib.suppress(OSError):
            os.close(file)
    _held.clear()


os.register_at_fork(after_in_child=_release_in_child)


@contextlib.contextmanager
def use_home(home: Path) -> Generator[None]:
    """Hold a home while calls are made in it. Raises UserError if another process maintains it for over a minute."""
    with _open_lock(home / HOME_LOCK) as file:
        if not _try_to_lock(file, fcntl.LOCK_SH, MAINTENANCE_TRIES):
            raise UserError(f"{home} is being merged, shrunk or repaired by another process: wait for it")
        yield


@contextlib.contextmanager
def maintain_home(home: Path) -> Generator[None]:
    """Hold a home alone. Raises UserError if a run is active in it, or a program that makes calls.

    Another process that maintains the home is waited for.
    """
    with _open_lock(home / HOME_LOCK) as file:
        for _ in range(MAINTENANCE_TRIES):
            active_run = find_active_run(home)
            if active_run:
                raise UserError(f"run {active_run} is in progress in {home}: wait for it")
            if _try_to_lock(file, fcntl.LOCK_EX, 1):
                break
            time.sleep(WAIT_S)
        else:
            raise UserError(f"{home} is in use by another process: wait for it")
        yield


@contextlib.contextmanager
def lock_run(home: Path, run: str, shard: str = "") -> Generator[None]:
    """Hold the lock of a run, or of one shard: different shards may run at the same time.

    Raises UserError if another process holds it: the same run twice at once would pay twice.
    """
    if not is_run_id(run):
        raise UserError(f"{run!r} is not the name of a run")
    locks = home / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    _check_others(locks, run, shard)
    name = run
    if shard:
        name = f"{run}{SHARD}{shard.replace('/', '-of-')}"
    with _open_lock(locks / name) as file:
        if not _try_to_lock(file, fcntl.LOCK_EX, TRIES):
            raise UserError(f"run {run} is already going on in another process; wait for it, or use another --home")
        os.ftruncate(file, 0)
        os.write(file, str(os.getpid()).encode())
        yield


@contextlib.contextmanager
def _open_lock(path: Path) -> Generator[int]:
    """Yield the descriptor of a lock file, which is created. Raises UserError if it is no regular file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise UserError(f"{path} cannot be used as a lock: {error.strerror}") from None
    _held.add(file)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise UserError(f"{path} cannot be used as a lock: it is not a regular file")
        yield file
    finally:
        if file in _held:
            _held.discard(file)
            os.close(file)


def _try_to_lock(file: int, kind: int, tries: int) -> bool:
    for tries_left in reversed(range(tries)):
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except OSError:
            if tries_left:
                time.sleep(WAIT_S)
    return False


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
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except PermissionError:
        return True
    except (OSError, ValueError):  # absent, no regular file, or a name that no file can have
        return False
    try:
        if stat.S_ISREG(os.fstat(file).st_mode):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # another process holds it
        return True
    finally:
        os.close(file)
    return False
