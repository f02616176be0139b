"""A real browser for tests: Debian's chromium under Playwright. Where either is missing, a test that needs them is
skipped, and says so."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from waiting import HANGS

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def patient(make: Callable[..., Any]) -> Callable[..., Any]:
    def made(**options: Any) -> Any:
        one = make(**options)
        one.set_default_timeout(1000 * HANGS)
        return one

    return made


@contextmanager
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install '.[dev]')")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no chromium (apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=1000 * HANGS)
        made.new_page, made.new_context = patient(made.new_page), patient(made.new_context)
        try:
            yield made
        finally:
            made.close()


class Watch:
    """Everything that a page should not do: errors, blocked loads, addresses outside."""

    def __init__(self, page: Any, inside: str) -> None:
        self.wrong: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on(
            "console", lambda message: self.wrong.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("dialog", lambda dialog: (self.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((inside, "data:", "about:")) else self.wrong.append(request.url)
            ),
        )


def wait_for_pictures(page: Any) -> None:
    """Until every picture of a page is there; the page's own policy forbids the usual way to ask this."""
    for _ in range(int(10 * HANGS)):
        if page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)"):
            return
        page.wait_for_timeout(100)
    raise AssertionError("pictures are missing")
