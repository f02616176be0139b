"""What is installed from a wheel, in an environment of its own and far from the checkout, is all of weft."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from waiting import HANGS

ROOT = Path(__file__).parents[2]
SETUPTOOLS = 77  # the first that knows what pyproject.toml says of the license
ALL = """
import importlib.metadata
import sys

import weft
from weft.benchmarks import load_benchmark
print(weft.__file__)
print(importlib.metadata.version("weft-eval"), importlib.metadata.metadata("weft-eval")["License-Expression"])
print(sum(len(list(load_benchmark(name).tables([]))) for name in sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing of an earlier build gets in."""
    try:
        found = importlib.metadata.version("setuptools")
    except importlib.metadata.PackageNotFoundError:
        found = "0"
    if int(found.partition(".")[0]) < SETUPTOOLS:
        pytest.skip(f"setuptools {SETUPTOOLS} or newer is not here ({found}): pip install -e '.[dev]'")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, source / name)
    pip("wheel", source, "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", out)
    return next(out.glob("*.whl"))


def pip(*words: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel in it; others' packages are those of the environment that the tests
    are in."""
    place = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    pip("--python", place / "bin" / "python", "install", "--no-deps", "--no-index", wheel)
    packages = next(place.glob("lib/python*/site-packages"))
    (packages / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")) + "\n")
    return place / "bin"


def call(program: Path, folder: Path, *words: Any) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [program, *map(str, words)], cwd=folder, env=environment, capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_every_file_of_the_package_is_in_the_wheel_and_nothing_else(wheel: Path):
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if not name.partition("/")[0].endswith(".dist-info")}
    packages = [ROOT / "src" / name for name in ("weft", "weft_recipes", "weft_tabletop")]
    found = [path for package in packages for path in package.rglob("*") if path.is_file()]
    files = {str(path.relative_to(ROOT / "src")) for path in found if "__pycache__" not in path.parts}
    assert inside == files
    licenses = {Path(name).name for name in zipfile.ZipFile(wheel).namelist() if "/licenses/" in name}
    assert licenses == {"LICENSE", "NOTICE"}


def test_weft_from_a_wheel_makes_runs_and_reports(clean: Path, tmp_path: Path):
    weft = clean / "weft"
    benchmarks = (
        "weave",
        "imug",
        "rover-ig",
        "rover-tg",
        "planviz",
        "weaverbench",
        "opening",
        "gedit",
        "risebench",
        "imgedit",
        "geneval",
        "kris",
        "geneval2",
        "mmvet",
    )
    place, version, tables = call(clean / "python", tmp_path, "-c", ALL, *benchmarks).splitlines()
    assert Path(place).is_relative_to(clean.parent) and version == "0.1.0 Apache-2.0" and int(tables) >= len(benchmarks)
    assert "report" in call(weft, tmp_path, "--help")
    call(weft, tmp_path, "data", "make", "tabletop-weave", "--samples", 4, "--out", "tables")
    assert "tabletop/tiny" in call(
        weft, tmp_path, "run", "weave", "--data", "tables", "--model", "tabletop/tiny", "--judge", "tabletop/exact"
    )
    page = tmp_path / call(weft, tmp_path, "report", "last").strip()
    assert "tabletop/tiny" in page.read_text() and r"\toprule" in call(
        weft, tmp_path, "report", "last", "--format", "latex"
    )
