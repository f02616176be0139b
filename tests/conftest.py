"""Fixtures: a small WEAVE dataset of our own, the real samples where they are, and a provider on a real socket."""

import asyncio
import contextlib
import gc
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from fakes import Fake
from server import Provider
from toy import toy_records, write_weave
from waiting import HANGS
from weft.store.blobs import Blobs

gc.set_threshold(50_000, 20, 100)  # as the command has it
hypothesis.settings.register_profile("weft", deadline=None)  # a busy machine is no defect
hypothesis.settings.load_profile("weft")
os.environ["WEFT_PREFLIGHT"] = "0"  # calls are counted in most tests; those about the question before a run ask for it
# an integer: tests run in an order of chance, which is the same for the same seed
SEED = os.environ.get("WEFT_TEST_SEED")
LONG = ("e2e", "hostile")  # folders of long tests: at the end, no worker is left alone with one
REAL = Path(__file__).parent.parent.parent / "shared" / "data" / "weave"


def pytest_report_header() -> str | None:
    return f"order: WEFT_TEST_SEED={int(SEED)}" if SEED else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Quiet runs have no header. Conformance with the released scripts is shown whether or not it passes."""
    if SEED:
        terminalreporter.write_line(f"order: WEFT_TEST_SEED={int(SEED)}")
    reports = [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]
    tables = [value for report in reports for name, value in report.user_properties if name == "conformance"]
    for table in sorted(tables):
        terminalreporter.write_line(f"conformance with released scripts, {table}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle the tests by the seed alone, so that every worker has the same order; else begin with the long ones."""
    if SEED:
        random.Random(int(SEED)).shuffle(items)
    else:
        items.sort(key=lambda item: item.path.parent.name not in LONG)


def pytest_collection_finish() -> None:
    """What is here before the first test is not looked through again at each collection of garbage."""
    gc.freeze()


@pytest.fixture(autouse=True)
def patience_with_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges that talk nonsense are what many tests are about; that such a one is left after a while is another's."""
    monkeypatch.setattr("weft.judges.vlm.MAX_UNUSABLE_REPLIES", 1_000_000)


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_weave(tmp_path / "toy", toy_records())


@pytest.fixture
def real() -> Path:
    if not REAL.is_dir():
        pytest.skip(f"the real WEAVE samples are not here ({REAL})")
    return REAL


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs")


@pytest.fixture
def stand() -> Iterator[Callable[[Fake], Fake]]:
    """Fakes that stand until the test is over, in a thread with a loop of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    closing = contextlib.AsyncExitStack()

    def start(fake: Fake) -> Fake:
        return asyncio.run_coroutine_threadsafe(closing.enter_async_context(fake.up()), loop).result(HANGS)

    yield start
    asyncio.run_coroutine_threadsafe(closing.aclose(), loop).result(HANGS)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(HANGS)
    loop.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Provider]]:
    """Start providers in a thread with a loop of their own, so that tests may block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    started: list[Provider] = []

    def start(**options: Any) -> Provider:
        provider = Provider(**options)
        asyncio.run_coroutine_threadsafe(provider.start(), loop).result(HANGS)
        started.append(provider)
        return provider

    yield start
    for provider in started:
        asyncio.run_coroutine_threadsafe(provider.stop(), loop).result(HANGS)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(HANGS)
    loop.close()
