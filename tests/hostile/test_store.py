"""A store that is full, damaged, or fed with what only looks like a picture."""

import errno
import hashlib
import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

import weft
from server import drawn
from waiting import HANGS
from weft.errors import ImageError, StoreError
from weft.store import blobs as blobs_module
from weft.store.blobs import Blobs
from weft.store.images import PixelBudget


def test_a_full_disk_is_told_as_one_and_leaves_no_record_out(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*args: Any, **named: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(blobs_module, "write_file", full)
    with pytest.raises(StoreError, match="an image cannot be stored in .*: No space left on device"):
        weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path / "home")


def test_a_disk_that_fills_up_during_a_run_ends_it(
    toy: Path, tmp_path: Path, serve: Any, monkeypatch: pytest.MonkeyPatch
):
    provider, real, count = serve(), blobs_module.write_file, [0]

    def filling(path: Path, data: bytes, *, durable: bool = False) -> None:
        count[0] += durable
        if count[0] > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, data, durable=durable)

    monkeypatch.setattr(blobs_module, "write_file", filling)
    options: Any = {
        "data": toy,
        "model": f"openai-chat/model@{provider.url}",
        "judge": "constant/5",
        "home": tmp_path / "home",
    }
    with pytest.raises(StoreError, match="No space left on device"):
        weft.evaluate("weave", **options)
    monkeypatch.setattr(blobs_module, "write_file", real)
    run = weft.evaluate("weave", **options)
    assert run.record.state == "finished" and all(verdict.value is not None for verdict in run.verdicts)


def spoil(path: Path) -> bytes:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    return bytes(data)


def test_a_damaged_file_is_never_used_and_made_anew(blobs: Blobs, toy: Path, tmp_path: Path, serve: Any):
    data = drawn("a")
    image = blobs.put(data)
    spoil(blobs.path(image.digest))
    with pytest.raises(ImageError, match="is damaged in the store"):
        blobs.read(image)
    assert not blobs.has(image), "it is put aside"
    assert blobs.read(blobs.put(data)) == data

    provider = serve()
    options: Any = {"data": toy, "model": f"openai-chat/model@{provider.url}", "home": tmp_path / "home"}
    run = weft.evaluate("weave", judge="constant/5", **options)
    made = next(turn.reply.last_image for turn in run.turns if turn.reply.last_image is not None)
    damaged = spoil(Blobs(tmp_path / "home" / "blobs").path(made.digest))
    judge = f"openai-chat/judge@{provider.url}"
    again = weft.evaluate("weave", judge=judge, **options)
    unscored = [verdict for verdict in again.verdicts if verdict.value is None]
    assert unscored and all("an image" in verdict.reason and "store" in verdict.reason for verdict in unscored)
    assert any("is damaged in the store" in verdict.reason for verdict in unscored)
    sent = {picture for seen in provider.seen for picture in seen.pictures}  # by the bytes that came
    assert sent and f"sha256:{hashlib.sha256(damaged).hexdigest()}" not in sent, "what was damaged went to nobody"
    mended = weft.evaluate("weave", judge=judge, **options)
    assert all(verdict.value is not None for verdict in mended.verdicts), "and the next command asks for it again"


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def with_exif(exif: bytes) -> bytes:
    data = drawn("exif", 700)
    end = data.index(b"IDAT") - 4
    return data[:end] + chunk(b"eXIf", exif) + data[end:]


BAD_EXIF = [
    b"",
    b"II",
    b"garbage and more",
    b"II*\0\xff\xff\xff\xff",
    b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\xff\xff\0\0\0\0\0\0",
]


@pytest.mark.parametrize("exif", BAD_EXIF)
def test_a_picture_with_bad_exif_is_taken_as_it_stands_and_can_be_used_everywhere(
    exif: bytes, toy: Path, tmp_path: Path
):
    from weft import api
    from weft.models.adapt import adapt_messages, build_stored_strip
    from weft.types import Message, Takes

    data = with_exif(exif)
    for file in (toy / "test" / "imgs").iterdir():
        file.write_bytes(data)
    run = weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path / "home")
    assert len(run.turns) == 10
    page = api.write_report([run], tmp_path / "report", home=tmp_path / "home")
    assert page.exists()
    blobs = Blobs(tmp_path / "home" / "blobs")
    image = blobs.put(data)
    assert build_stored_strip([image, image], [1, 2], blobs).width > 1400
    small = adapt_messages((Message("user", (image,)),), Takes(max_side=100), blobs)[0].parts[0]
    assert small.width == 100  # type: ignore[union-attr]


def animated(format: str) -> bytes:
    from PIL import Image

    frames = [Image.new("RGB", (9, 9), colour) for colour in ("red", "green")]
    out = io.BytesIO()
    frames[0].save(out, format, save_all=True, append_images=frames[1:])
    return out.getvalue()


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG"])
def test_an_animation_is_no_picture(blobs: Blobs, format: str):
    with pytest.raises(ImageError, match="is animated: one still image is expected"):
        blobs.put(animated(format))


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "JPEG"])
@pytest.mark.parametrize("lenient", [False, True])
def test_a_truncated_picture_is_none_whatever_the_users_code_told_pillow(
    blobs: Blobs, format: str, lenient: bool, monkeypatch: pytest.MonkeyPatch
):
    from PIL import Image, ImageFile

    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", lenient)
    picture = Image.effect_noise((200, 200), 80).convert("RGB")
    out = io.BytesIO()
    picture.save(out, format)
    data = out.getvalue()
    blobs.put(data)
    for size in (int(len(data) * 0.3), int(len(data) * 0.9), len(data) - (1 if format != "JPEG" else 40)):
        with pytest.raises(ImageError):
            blobs.put(data[:size])


def test_pictures_that_are_large_together_wait_for_each_other():
    import threading
    import time

    room, inside, most, lock = PixelBudget(100), [0], [0], threading.Lock()

    def work(pixels: int) -> None:
        with room.reserve(pixels):
            with lock:
                inside[0] += min(pixels, 100)
                most[0] = max(most[0], inside[0])
            time.sleep(0.01)
            with lock:
                inside[0] -= min(pixels, 100)

    threads = [threading.Thread(target=work, args=(pixels,)) for pixels in (60, 60, 30, 500, 10, 90, 40, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS)
    assert most[0] <= 100 and inside[0] == 0


def test_a_thread_that_has_room_gets_more_at_once(blobs: Blobs):
    room = PixelBudget(100)
    with room.reserve(80), room.reserve(80), room.reserve(100):
        pass
    with room.reserve(100):
        pass
    image = blobs.put(drawn("a", 64))
    with blobs.decode_within_memory(image) as picture:
        blobs.put_pil(picture.transpose(0))


@pytest.mark.parametrize(
    "digest", ["/etc/passwd", "../../x", "", "a" * 63, "A" * 64, "a" * 65, "a" * 63 + "\n", "/dev/zero"]
)
def test_a_name_that_is_no_digest_leads_nowhere(blobs: Blobs, digest: str):
    from weft.types import Image

    image = Image(digest, "image/png", 5, 5, 0)
    assert not blobs.has(image)
    with pytest.raises(ImageError, match="is not the digest of an image"):
        blobs.read(image)


def test_a_picture_in_the_store_is_a_plain_file_and_no_link(blobs: Blobs, tmp_path: Path):
    image = blobs.put(drawn("a"))
    path = blobs.path(image.digest)
    (tmp_path / "other").write_bytes(drawn("a"))
    for odd in (lambda: os.mkfifo(path), lambda: path.symlink_to(tmp_path / "other"), lambda: path.mkdir()):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        odd()
        with pytest.raises(ImageError):
            blobs.read(image)


def test_a_report_on_a_home_that_cannot_be_written_shows_its_pictures(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from weft.report import gallery

    shown = gallery.Thumbnails(tmp_path / "home")
    image = Blobs(tmp_path / "home" / "blobs").put(drawn("large", 900))

    def refused(*rest: Any, **named: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(gallery, "write_file", refused)
    data = shown.data(image)
    assert data is not None and data[8:12] == b"WEBP"
