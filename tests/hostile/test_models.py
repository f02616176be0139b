"""Models of the user's own that do what no model should. Nothing they do may lose a dialogue."""

import asyncio
import concurrent.futures
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import weft
from manifests import manifest
from waiting import HANGS
from weft.errors import BudgetReached, WeftError

TURNS = 10


class Odd:
    """Answers, but for one turn, where it does something else."""

    name, version = "odd", "1"

    def __init__(self, act: Any, turn: str = "Four.") -> None:
        self.act, self.version = act, str(id(act))

    def __call__(self, messages: Any, want: str) -> Any:
        from PIL import Image

        asked = " ".join(part for _, parts in messages for part in parts if isinstance(part, str))
        if "show?" in asked and "And " not in asked:
            return self.act()
        return Image.new("RGB", (8, 8), "red") if want == "image" else "words"


class OddAsync(Odd):
    async def __call__(self, messages: Any, want: str) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        return Odd.__call__(self, messages, want)


def raising(error: Any) -> Any:
    def act() -> Any:
        raise error

    return act


RAISED = [
    asyncio.CancelledError(), concurrent.futures.CancelledError(), StopIteration(3), StopAsyncIteration(), SystemExit(0), SystemExit("bye"),
    KeyboardInterrupt(), GeneratorExit(), TimeoutError("mine"), RecursionError(), MemoryError(), BaseException("base"),
    BaseExceptionGroup("group", [KeyboardInterrupt()]), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), 
    Warning("w"), BudgetReached("x"),
]  # fmt: skip


@pytest.mark.parametrize("kind", [Odd, OddAsync])
@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_whatever_a_model_raises_leaves_its_turn_unscored_and_no_other(
    toy: Path, tmp_path: Path, kind: Any, error: Any
):
    run = weft.evaluate("weave", data=toy, model=kind(raising(error)), judge="constant/5", home=tmp_path / "home")
    assert run.record.state == "finished" and len(run.turns) == TURNS
    failed = [turn for turn in run.turns if turn.reply.outcome == "failed"]
    assert [(turn.sample, turn.turn) for turn in failed] == [("15", 0)] and type(error).__name__ in failed[
        0
    ].reply.reason
    assert sum(verdict.value is None for verdict in run.verdicts) == 1


class Text(str):
    """Text of a class of its own."""

    __slots__ = ()


def odd_values() -> list[Any]:
    import numpy as np

    return [
        np.str_("words"),
        Text("words"),
        [np.str_("some"), Text("words")],
        "\ud800",
        "\0",
        np.float64(3),
        None,
        object(),
        {"a": object()},
        b"no",
    ]


@pytest.mark.parametrize("at", range(10))
def test_whatever_a_model_returns_is_a_reply_or_a_failed_call(toy: Path, tmp_path: Path, at: int):
    value = odd_values()[at]
    run = weft.evaluate("weave", data=toy, model=Odd(lambda: value), judge="constant/5", home=tmp_path / "home")
    assert run.record.state == "finished" and len(run.turns) == TURNS
    reply = next(turn.reply for turn in run.turns if (turn.sample, turn.turn) == ("15", 0))
    assert reply.outcome == ("answered" if at < 3 or at == 4 else "failed"), reply
    if at < 3:
        assert all(type(part.text) is str for part in reply.parts)  # type: ignore[union-attr]


def test_a_model_that_hangs_costs_its_turn_after_its_time(toy: Path, tmp_path: Path):
    options: Any = {"data": toy, "judge": "constant/5", "home": tmp_path / "home", "model_options": {"timeout": "0.5"}}

    class Sleepy(Odd):
        async def __call__(self, messages: Any, want: str) -> Any:  # type: ignore[override]
            made = Odd.__call__(self, messages, want)
            return await made if asyncio.iscoroutine(made) else made

    for kind, hang in ((Odd, lambda: time.sleep(10_000)), (Sleepy, lambda: asyncio.sleep(10_000))):
        run = weft.evaluate("weave", model=kind(hang), **options)
        reply = next(turn.reply for turn in run.turns if (turn.sample, turn.turn) == ("15", 0))
        assert (run.record.state, reply.outcome) == (
            "finished",
            "failed",
        ) and "did not come back within 0.5 s" in reply.reason


def test_a_model_that_forks_is_still_one_run(toy: Path, tmp_path: Path):
    """Both processes return from the model; only one goes on."""
    for kind in (Odd, OddAsync):
        script = f"""
        import os, sys
        sys.path[:0] = {[str(Path(__file__).parents[1]), str(Path(__file__).parent)]!r}
        import test_models, weft
        model = test_models.{kind.__name__}(lambda: (os.fork(), "words")[1])
        run = weft.evaluate("weave", data={str(toy)!r}, model=model, judge="constant/5", home={str(tmp_path / kind.__name__)!r})
        print(run.record.state, len(run.turns), sum(v.value is None for v in run.verdicts))
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=HANGS
        )
        assert done.stdout.split() == ["finished", "10", "0"], done.stdout + done.stderr


ENDINGS = {
    "exit": "asyncio.get_running_loop().create_task(leave()); await asyncio.sleep(0.1)",
    "stop": "asyncio.get_running_loop().stop(); await asyncio.sleep(0.1)",
    "cancel": "[task.cancel() for task in asyncio.all_tasks()]; await asyncio.sleep(0.1)",
}


@pytest.mark.parametrize("way", ENDINGS)
def test_a_model_that_ends_the_loop_is_an_error_and_never_a_success(toy: Path, tmp_path: Path, way: str):
    code = "import asyncio\nasync def leave():\n    raise SystemExit(0)\n"
    code += f"async def model(messages, want):\n    {ENDINGS[way]}\n    return 'x'\n"
    (tmp_path / "mine.py").write_text(code)
    command = [
        sys.executable,
        "-m",
        "weft",
        "run",
        "weave",
        "--data",
        str(toy),
        "--model",
        "mine.py:model",
        "--judge",
        "constant/5",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 1 and "run the same command again" in done.stderr, (done.returncode, done.stderr[-500:])


def test_a_model_that_goes_to_another_folder_takes_nothing_with_it(toy: Path, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    code = "import os\nfrom PIL import Image\nclass Model:\n    version = '1'\n    def __init__(self):\n        os.chdir('elsewhere')\n"
    code += "    def __call__(self, messages, want):\n        return Image.new('RGB', (9, 9), 'red') if want == 'image' else 'x'\n"
    (tmp_path / "mine.py").write_text(code)
    command = [
        sys.executable,
        "-m",
        "weft",
        "run",
        "weave",
        "--data",
        str(toy),
        "--model",
        "mine.py:Model",
        "--judge",
        "constant/5",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0 and not list((tmp_path / "elsewhere").iterdir()), done.stderr


def test_a_slow_model_that_takes_one_at_a_time_is_never_asked_twice_at_once(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It comes back only when the next call waits for it; those after the first have all the time they need."""
    from weft.models.function import FunctionEndpoint

    inside, most, may, real = [0], [0], threading.Event(), FunctionEndpoint._wait_for_free_thread

    async def waited(self: FunctionEndpoint) -> None:
        if self._busy_threads:
            self._timeout = HANGS
            asyncio.get_running_loop().call_later(0.1, may.set)
        await real(self)
        most[0] = max(most[0], inside[0] + 1)

    monkeypatch.setattr(FunctionEndpoint, "_wait_for_free_thread", waited)

    def slow(messages: Any, want: str) -> str:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        may.wait(HANGS)
        inside[0] -= 1
        return "x"

    slow.version = "1"  # type: ignore[attr-defined]
    run = weft.evaluate(
        "weave", data=toy, model=slow, judge="constant/5", home=tmp_path / "home", model_options={"timeout": "0.2"}
    )
    assert may.is_set(), "the first one was given up"
    assert run.record.state == "finished" and most[0] == 1


def test_a_run_that_lost_a_turn_is_not_finished(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from weft.evaluation import generate

    real = generate.LiveReplies.reply_to

    async def lossy(self: Any, sample: Any, turn: Any, dialogue: Any) -> Any:
        if (sample.id, turn.number) == ("9", 1):
            raise asyncio.CancelledError
        return await real(self, sample, turn, dialogue)

    monkeypatch.setattr(generate.LiveReplies, "reply_to", lossy)
    with pytest.raises(WeftError, match="the run is not finished: 9 of 10 turns are in the journal"):
        weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path / "home")
    from weft.store.journal import Journal

    assert [record.state for record in Journal(tmp_path / "home" / "journal.sqlite", readonly=True).runs()] == [
        "stopped"
    ]


def test_a_model_that_blocks_the_loop_can_be_broken_off(toy: Path, tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        textwrap.dedent("""
        import signal, time
        version = "1"
        async def model(messages, want):
            real = signal.getsignal(signal.SIGINT)
            def told(number, frame):
                real(number, frame)
                print("told", flush=True)
            signal.signal(signal.SIGINT, told)
            print("in", flush=True)
            time.sleep(10_000)
        """)
    )
    command = [
        sys.executable,
        "-m",
        "weft",
        "run",
        "weave",
        "--data",
        str(toy),
        "--model",
        "mine.py:model",
        "--judge",
        "constant/5",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "in\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "told\n"  # the first is waited for
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=HANGS)
    assert process.returncode == 130 and "Traceback" not in err, err


def test_kill_while_a_forked_worker_lives_leaves_the_run_free(toy: Path, tmp_path: Path):
    """The worker inherits what its parent had open, but not the lock."""
    (tmp_path / "mine.py").write_text(
        textwrap.dedent("""
        import os, time
        version = "1"
        def model(messages, want):
            child = os.fork()
            if child == 0:
                time.sleep(10_000)
                os._exit(0)
            print(child, flush=True)
            time.sleep(10_000)
        """)
    )
    command = [
        sys.executable,
        "-m",
        "weft",
        "run",
        "weave",
        "--data",
        str(toy),
        "--model",
        "mine.py:model",
        "--judge",
        "constant/5",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        process.kill()
        process.wait()
        (tmp_path / "mine.py").write_text(
            (tmp_path / "mine.py").read_text().split("def model")[0] + "def model(messages, want):\n    return 'x'\n"
        )
        listed = subprocess.run([sys.executable, "-m", "weft", "runs"], cwd=tmp_path, capture_output=True, text=True)
        assert "killed" in listed.stdout, listed.stdout + listed.stderr
        run = listed.stdout.split()[0]
        from weft.store.locks import lock_run

        with lock_run(tmp_path / ".weft", run):
            pass
    finally:
        os.kill(child, signal.SIGKILL)


def test_the_last_run_is_the_last_one_whatever_the_clock_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from weft.store.journal import Journal

    journal = Journal(tmp_path / "journal.sqlite")
    for run, clock in (("a", 5000.0), ("b", 100.0), ("c", 90.0), ("a", 50.0), ("d", 40.0)):
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        journal.begin_run(run, manifest(), [])
        assert journal.runs()[-1].id == run
    journal.close()


def test_a_clock_that_jumps_changes_no_number_and_ends_no_report(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    import itertools

    from weft.store.recover import check_journal

    run = weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path / "still")
    jumps = itertools.cycle([1e9, 4e9, -1e6, 0.0, 2e9, 1.5e9])
    monkeypatch.setattr("time.time", lambda: next(jumps))
    for _ in range(3):
        jumped = weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path / "jumps")
        assert jumped.report("csv") == run.report("csv") and jumped.summary().lines
    last = weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=tmp_path / "jumps")
    assert weft.load("last", home=tmp_path / "jumps").id == last.id
    assert all(total.seconds >= 0 for total in jumped.totals)
    assert not check_journal(tmp_path / "jumps" / "journal.sqlite", save=False).problems
