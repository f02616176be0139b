"""The notebook in docs, cell by cell in a real kernel; and what a cell does when it is interrupted or its kernel
restarts."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from waiting import HANGS

nbclient = pytest.importorskip("nbclient", reason="nbclient is not here")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not here")
pytest.importorskip("ipykernel", reason="ipykernel is not here")
DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.fixture(autouse=True)
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels find the source that is tested, and a spec of their own."""
    source = str(Path(weft.__file__).parent.parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    spec = tmp_path / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    told = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": told, "display_name": "Python 3", "language": "python"}))


def execute(notebook: Any, folder: Path) -> None:
    nbclient.NotebookClient(
        notebook, timeout=HANGS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()


def run(folder: Path, *cells: str) -> list[Any]:
    """Their outputs."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    execute(made, folder)
    return [cell.outputs for cell in made.cells]


def texts(outputs: Any, kind: str = "text/plain") -> str:
    return "\n".join(
        str(one.get("data", {}).get(kind, "")) + str(one.get("text", "")) + str(one.get("evalue", ""))
        for one in outputs
    )


def printed(outputs: Any) -> str:
    return "".join(str(one.get("text", "")) for one in outputs if one.get("output_type") == "stream")


def test_the_notebook_in_docs_runs_and_shows_tables(tmp_path: Path):
    notebook = nbformat.read(DOCS / "notebook.ipynb", as_version=4)
    execute(notebook, tmp_path)
    shown = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    html = [texts(outputs, "text/html") for outputs in shown]
    assert "<table>" in html[1] and "scribbler" in html[1] and "verdicts scored" in html[1]
    assert "<progress" in html[1], "it shows how far it is"
    assert "3 seeds" in printed(shown[4]) and "\u00b1" in printed(shown[4])
    assert html[5].count("<tr>") == 5, "a head and four runs"


MODEL = """
import time
import weft
from weft_tabletop.make import make
from pathlib import Path
if not Path("tables").exists():
    make("tabletop-weave", Path("tables"), samples=6, seed=0)
calls = []
def slow(messages, want):
    calls.append(want)
    time.sleep(PAUSE)
    return "I do not know."
PAUSE = {pause}
"""
RUN = 'run = weft.evaluate("weave", data="tables", model=slow, judge="tabletop/exact")'


def test_a_function_of_a_notebook_keeps_its_answers_when_the_kernel_restarts_and_not_when_it_changes(tmp_path: Path):
    first = run(tmp_path, MODEL.format(pause=0.0), RUN, "print(len(calls))")
    again = run(tmp_path, MODEL.format(pause=0.0), RUN, "print(len(calls), run.record.round)")
    assert int(printed(first[2])) > 10 and printed(again[2]).split() == ["0", "2"]
    other = run(tmp_path, MODEL.format(pause=0.001), RUN, "print(len(calls))")  # a value that it uses is another
    assert int(printed(other[2])) == int(printed(first[2]))


HELD = """
import os, signal, threading
may = threading.Event()
def slow(messages, want):
    calls.append(want)
    if len(calls) == 3:
        may.wait()
    return "I do not know."
slow.version = "1"
"""
INTERRUPTED = f"""
def interrupt():
    while len(calls) < 3:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    {RUN}
    print("not interrupted")
except KeyboardInterrupt:
    for one in threading.enumerate():
        if one.name in ("weft", "journal"):
            one.join()
    print("interrupted", len(calls))
may.set()
"""


def test_interrupting_a_cell_ends_its_run_and_the_next_cell_goes_on(tmp_path: Path):
    """In the middle of a call that does not come back before the cell has ended."""
    done = run(
        tmp_path,
        MODEL.format(pause=0.0) + HELD,
        INTERRUPTED,
        RUN,
        "print(run.record.state, len(calls) - len(run.turns))",
    )
    assert printed(done[1]) == "interrupted 3\n", "it asked nothing more, and has ended"
    assert printed(done[3]).split() == ["finished", "1"], "the lock is free, and what was answered is not asked again"
