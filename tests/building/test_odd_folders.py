"""Folders of builds that were killed, moved, shrunk, or made by somebody else."""

import json
import os
import shutil
from pathlib import Path

import pytest

from building.test_local_builds import build, calls, files, log
from weft.building.export import export
from weft.building.parts import list_files
from weft.building.status import read_status
from weft.errors import StoreError, UserError
from weft.store.locks import lock_run
from weft.store.prune import find_unused, remove_unused

assert log  # a fixture


def test_pruning_a_home_keeps_what_a_build_paid_for(tmp_path: Path, log: Path):
    build(tmp_path / "out", seeds=8, part_size=5)
    remove_unused(tmp_path / "out", find_unused(tmp_path / "out"))
    shutil.rmtree(tmp_path / "out" / "parts")
    build(tmp_path / "out", seeds=8, part_size=5)
    assert max(calls(log).values()) == 1


@pytest.mark.parametrize("name", ["build.json", "parts/00000.jsonl"])
def test_a_pipe_in_a_builds_folder_is_not_waited_for(tmp_path: Path, name: str):
    build(tmp_path / "out", seeds=4)
    (tmp_path / "out" / name).unlink()
    os.mkfifo(tmp_path / "out" / name)
    with pytest.raises(UserError, match="is not a regular file"):
        read_status(tmp_path / "out")
    with pytest.raises(UserError, match="is not a regular file"):
        build(tmp_path / "out", seeds=4)


@pytest.mark.parametrize("home", ["\0", "x" * 5000])
def test_a_home_that_can_be_no_path_is_refused(tmp_path: Path, home: str):
    build(tmp_path / "out", seeds=4)
    file = tmp_path / "out" / "build.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "home": home}))
    with pytest.raises(UserError, match="its home is no path"):
        export(tmp_path / "out", "parquet", tmp_path / "copy")


def test_a_part_that_a_kill_left_twice_counts_once(tmp_path: Path):
    build(tmp_path / "out", seeds=4)
    whole = files(tmp_path / "out")
    part = tmp_path / "out" / "parts" / "00000.jsonl"
    shutil.copy(part, part.with_name("00000.partial.jsonl"))
    assert list_files(tmp_path / "out") == [part]
    build(tmp_path / "out", seeds=4)
    assert files(tmp_path / "out") == whole


def test_rows_of_one_seed_in_two_files_are_refused(tmp_path: Path):
    build(tmp_path / "out", seeds=4)
    part = tmp_path / "out" / "parts" / "00000.jsonl"
    shutil.copy(part, part.with_name("00001.jsonl"))
    with pytest.raises(UserError, match=r"00001.jsonl is no row of a build \(seed 0 comes after seed 3\)"):
        export(tmp_path / "out", "weave", tmp_path / "copy")


def test_an_image_that_is_lost_is_made_anew_by_the_same_command(tmp_path: Path):
    build(tmp_path / "out", seeds=8)
    whole = files(tmp_path / "out")
    record = json.loads((tmp_path / "out" / "test.json").read_text())[-1]
    lost = tmp_path / "out" / record["images"][1]
    (blob,) = [file for file in (tmp_path / "out" / "blobs").glob("??/*") if file.samefile(lost)]
    blob.unlink()
    with pytest.raises(StoreError, match="seed 7: an image .* is not in the store"):
        build(tmp_path / "out", seeds=8)
    build(tmp_path / "out", seeds=8)
    assert files(tmp_path / "out") == whole


def test_an_image_that_is_a_link_to_another_file_does_not_leave(tmp_path: Path):
    build(tmp_path / "out", seeds=4)
    (tmp_path / "key").write_bytes(b"x" * 74)
    for blob in (tmp_path / "out" / "blobs").glob("??/*"):
        (tmp_path / "key").write_bytes(b"x" * blob.stat().st_size)
        blob.unlink()
        blob.symlink_to(tmp_path / "key")
    with pytest.raises(UserError, match="cannot be read from the store"):
        export(tmp_path / "out", "weave", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_folder_does_not_say_in_which_home_a_build_goes_on(tmp_path: Path):
    home = tmp_path / "home"
    build(tmp_path / "out", seeds=4, home=home)
    build(tmp_path / "out", seeds=5)  # its own one has calls of it
    (home / "journal.sqlite").rename(tmp_path / "journal.sqlite")
    with pytest.raises(UserError, match="which has no call of this build: give --home PATH"):
        build(tmp_path / "out", seeds=6)
    assert not (home / "journal.sqlite").exists()


def test_two_commands_never_write_one_folder(tmp_path: Path):
    build(tmp_path / "out", seeds=4)
    run = read_status(tmp_path / "out").manifest.run
    with lock_run(tmp_path / "out", run), pytest.raises(UserError, match="is already going on"):
        build(tmp_path / "out", seeds=5, home=tmp_path / "home")
