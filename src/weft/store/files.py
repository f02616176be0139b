"""Write-then-rename: whatever has its final name is whole. A reader, or a kill -9, never meets half a file or half a folder."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_file(path: Path, data: bytes, *, durable: bool = False) -> None:
    """`durable` waits until it would survive a power cut."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_folder(out: Path, write: Callable[[Path], None]) -> None:
    """A folder that `write` fills under another name. What is at its place goes when the new one is whole: at every moment the old one or
    the new one is there, under a name that tells."""
    out.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        part.chmod(0o755)
        write(part)
        old = out.with_name(f".{out.name}.old-{part.name}")
        if out.exists():
            out.rename(old)
        part.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
