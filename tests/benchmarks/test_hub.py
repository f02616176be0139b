"""Archives of datasets: what does not belong into a folder stays out of it."""

import inspect
import io
import os
import stat
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.benchmarks.download import download_dataset, unpack_archive
from weft.benchmarks.download_stream import stream_dataset
from weft.errors import UserError


def test_an_archive_is_unpacked_beside_itself_and_twice_is_once(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "test.zip", "w") as made:
        made.writestr("test.json", "[]")
        made.writestr("imgs/a.png", b"x" * 1000)
    unpack_archive(tmp_path / "test.zip")
    (tmp_path / "test.json").write_text("xx")  # of the same size: it is there
    unpack_archive(tmp_path / "test.zip")
    assert (tmp_path / "test.json").read_text() == "xx" and (tmp_path / "imgs" / "a.png").stat().st_size == 1000


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out.txt", "a/../../out.txt", "a\\..\\out.txt", ".", "./"])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str):
    inner = tmp_path / "inner"
    inner.mkdir()
    with zipfile.ZipFile(inner / "t.zip", "w") as made:
        made.writestr(name, "x")
    with pytest.raises(UserError, match="plain file inside"):
        unpack_archive(inner / "t.zip")
    assert not (tmp_path / "out.txt").exists()


def test_links_and_bombs_are_refused(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as made:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        made.writestr(link, "/etc/passwd")
    with pytest.raises(UserError, match="plain file inside"):
        unpack_archive(tmp_path / "link.zip")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("zeros", b"\0" * 250_000_000)
    with pytest.raises(UserError, match="more than the limit of"):
        unpack_archive(tmp_path / "bomb.zip")


def test_a_dataset_that_weft_does_not_know_is_asked_for_by_its_name_there(tmp_path: Path):
    with pytest.raises(UserError, match="OWNER/NAME --out imug"):
        download_dataset("imug", tmp_path)


def archive_of(name: str, content: bytes = b"x" * 5000) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, content)
    return out.getvalue()


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "no archive": lambda data: b"hello",
    "cut": lambda data: data[: len(data) // 2],
    "bytes changed": lambda data: data[:34] + b"\xff" * 8 + data[42:],
    "an unknown method": lambda data: data.replace(b"\x08\x00", b"\x63\x00"),
    "encrypted": lambda data: data[:6] + b"\x01\x00" + data[8:].replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_broken_archive_is_one_line_and_leaves_no_half_file(tmp_path: Path, damage: str):
    (tmp_path / "a.zip").write_bytes(DAMAGE[damage](archive_of("file.json")))
    with pytest.raises(UserError, match=r"a\.zip cannot be unpacked: "):
        unpack_archive(tmp_path / "a.zip")
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_pipe_is_no_archive(tmp_path: Path):
    os.mkfifo(tmp_path / "a.zip")
    with pytest.raises(UserError, match="not a regular file"):
        unpack_archive(tmp_path / "a.zip")


class FakeHub:
    """The two calls of huggingface_hub that a streamed download makes, from a dictionary."""

    def __init__(self, files: dict[str, bytes], fails_at: str = "") -> None:
        self.files = files
        self.fails_at = fails_at
        self.downloaded: list[str] = []

    def list_repo_files(self, repository: str, *, repo_type: str) -> list[str]:
        assert (repository, repo_type) == ("WeiChow/WEAVE", "dataset")
        return list(self.files)

    def hf_hub_download(self, repository: str, file: str, *, repo_type: str, local_dir: Path) -> str:
        if file == self.fails_at:
            raise ConnectionError("the line was cut\nand more")
        self.downloaded.append(file)
        path = local_dir / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.files[file])
        return str(path)


def test_the_fake_has_the_librarys_own_calls():
    library = pytest.importorskip("huggingface_hub")
    for call in ("list_repo_files", "hf_hub_download"):
        names = set(inspect.signature(getattr(library, call)).parameters)
        assert set(inspect.signature(getattr(FakeHub, call)).parameters) - {"self", "repository", "file"} <= names


def test_training_data_comes_file_by_file_and_goes_on_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    files = {
        "test/test.zip": b"another dataset",
        "train/train.json": b"[]",
        "train/part-0.zip": archive_of("imgs/a.png"),
        "train/part-1.zip": archive_of("imgs/b.png"),
        "train/extra.tar": b"tar",
        "../out.json": b"{}",
    }
    hub = FakeHub(files, fails_at="train/part-1.zip")
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    with pytest.raises(UserError, match=r"part-1\.zip could not be fetched .*the line was cut\); run the same command"):
        stream_dataset("weave-100k", tmp_path / "data")
    assert (tmp_path / "data/train/imgs/a.png").is_file() and not (tmp_path / "data/train/part-0.zip").exists()
    hub.fails_at = ""
    seen: list[str] = []
    folder, left = stream_dataset(
        "weave-100k", tmp_path / "data", lambda number, count, file: seen.append(f"{number} of {count}: {file}")
    )
    assert (folder, left) == (tmp_path / "data", ["train/extra.tar"])
    assert hub.downloaded.count("train/part-0.zip") == 1, "an archive that is unpacked is not downloaded again"
    assert seen[1] == "2 of 4: train/part-0.zip"
    assert not any(file.startswith(("test", "..")) for file in hub.downloaded)
    assert sorted(path.name for path in folder.rglob("*.png")) == ["a.png", "b.png"]


def test_offline_the_training_data_is_asked_for_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match=r"by hand: download the training files of .*WeiChow/WEAVE into"):
        stream_dataset("weave-100k", tmp_path)


def test_a_large_archive_of_images_is_no_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weft.benchmarks.download.MAX_UNPACKED_BYTES", 1000)
    (tmp_path / "a.zip").write_bytes(archive_of("imgs/a.png", os.urandom(5000)))
    unpack_archive(tmp_path / "a.zip")
    assert (tmp_path / "imgs/a.png").stat().st_size == 5000
