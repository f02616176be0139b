"""Tiny random models, made once for all tests of a process, in the layout that real ones are kept in."""

import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# threads that wait for each other at every small step crawl where others are at work
os.environ.setdefault("OMP_NUM_THREADS", "1")
MISSING = [name for name in ("torch", "transformers", "diffusers") if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["*"] if MISSING else []


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a model by its name in `tiny_models.MAKERS`."""
    import tiny_models

    place, made = tmp_path_factory.mktemp("weights"), dict[str, Path]()

    def make(name: str) -> Path:
        if name not in made:
            with tiny_models.torchvision_stub():
                made[name] = tiny_models.MAKERS[name](place / name)
        return made[name]

    return make


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(autouse=True, scope="session")
def small() -> Iterator[None]:
    """Editors scale what they are shown to a megapixel, and weft asks for one where an editor keeps a shape: not here."""
    import tiny_models

    from weft.models.local.run import pipeline_engine

    with tiny_models.small_conditions(), tiny_models.torchvision_stub(), pytest.MonkeyPatch.context() as smaller:
        smaller.setattr(pipeline_engine, "AREA", tiny_models.AREA)
        yield


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _data(tmp_path_factory, "tabletop-weave", 4)


@pytest.fixture(scope="session")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _data(tmp_path_factory, "tabletop-imug", 3)


def _data(factory: pytest.TempPathFactory, name: str, samples: int) -> Path:
    from typer.testing import CliRunner

    from weft.cli.app import app

    out = factory.mktemp("data") / name
    done = CliRunner().invoke(app, ["data", "make", name, "--samples", str(samples), "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out
