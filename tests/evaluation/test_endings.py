"""Runs that end early, and what they leave: nothing paid for is lost, nothing half is taken for whole."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from manifests import manifest
from weft.calls.budget import Budget
from weft.calls.caller import Caller, EndpointDown
from weft.errors import UserError
from weft.models.endpoint import FATAL, CallError, Endpoint, EndpointReply, TaskEndpoint
from weft.results.index import list_runs
from weft.store.journal import Journal, TurnRecord
from weft.types import Message, Reply, Request, Text, Verdict
from weft.workspace import read_only_journal


class Umpire(Endpoint):
    """A judge whose first draws end the run while the second ones are still under way."""

    def __init__(self) -> None:
        super().__init__("umpire", version="1")
        self.fatal, self.answered = True, 0

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        if self.fatal and not want.draw:
            raise CallError("no quota", FATAL)
        await asyncio.sleep(0.2)
        self.answered += 1
        return EndpointReply((Text('{"reasoning": "", "score": 5}'),), "answered")


def test_repeats_that_were_under_way_when_one_ended_the_run_are_in_the_journal(toy: Path, tmp_path: Path):
    judge = Umpire()
    settings: dict[str, Any] = {
        "data": toy,
        "model": "reference",
        "judge": judge,
        "home": tmp_path / "home",
        "judge_repeats": 2,
    }

    async def go() -> int:
        with pytest.raises(EndpointDown):
            await weft.evaluate_async("weave", **settings)
        return sum(task is not asyncio.current_task() for task in asyncio.all_tasks())

    assert asyncio.run(go()) == 0, "nobody is left behind"
    journal = Journal(tmp_path / "home" / "journal.sqlite", readonly=True)
    kept = journal.totals(journal.runs()[-1].id)
    journal.close()
    assert judge.answered and sum(total.answered for total in kept) == judge.answered
    judge.fatal, before = False, judge.answered
    run = weft.evaluate("weave", **settings)
    assert (
        all(verdict.value == 0.5 for verdict in run.verdicts) and judge.answered <= 2 * 22 and judge.answered > before
    )


def test_a_run_that_is_not_whole_is_not_judged_again(toy: Path, tmp_path: Path):
    weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=tmp_path / "home")
    db = sqlite3.connect(tmp_path / "home" / "journal.sqlite")  # as a kill in the middle leaves it
    db.execute("DELETE FROM replies WHERE sample = '9'")
    db.commit()
    db.close()
    with pytest.raises(UserError, match="has 8 of its 10 turns: finish it first"):
        weft.judge("last", judge="constant/0", home=tmp_path / "home")
    with sqlite3.connect(tmp_path / "home" / "journal.sqlite") as db:  # killed before the dataset was read to its end
        db.execute("UPDATE runs SET samples = NULL, turns = NULL, state = 'stopped'")
    with pytest.raises(UserError, match="has 8 turns: finish it first"):
        weft.judge("last", judge="constant/0", home=tmp_path / "home")
    found = weft.load("last", home=tmp_path / "home")
    assert found.summary().unfinished.startswith("UNFINISHED: 8 turns are done") and " 8 turns: " in found.report()
    with read_only_journal(tmp_path / "home") as journal:
        assert [(one.expected_turns, one.coverage) for one in list_runs(journal)] == [(None, "8/? turns")]
    with pytest.raises(UserError, match="judge_repeats must be at least 1"):
        weft.judge("last", judge="constant/0", home=tmp_path / "home", judge_repeats=0)


def test_a_strategy_that_does_not_exist_leaves_no_journal_open(toy: Path, tmp_path: Path):
    import threading

    def writers() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "journal" and thread.is_alive()}

    before = writers()  # other tests of this process may have left some
    with pytest.raises(UserError, match="there is no strategy 'nosuch'"):
        weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=tmp_path / "home", strategy="nosuch")
    assert not writers() - before


def test_a_task_that_failed_is_handed_in_again_by_the_next_command(tmp_path: Path):
    class Tasks(TaskEndpoint):
        poll_interval = 0.01

        def __init__(self) -> None:
            super().__init__("tasks")
            self.submitted = 0

        async def submit(self, messages: tuple[Message, ...], want: Request) -> str:
            self.submitted += 1
            return f"ticket-{self.submitted}"

        async def collect(self, ticket: str, want: Request) -> EndpointReply | None:
            return (
                EndpointReply((), "failed", "the machine burnt down")
                if ticket == "ticket-1"
                else EndpointReply((Text(ticket),), "answered")
            )

    journal, endpoint = Journal(tmp_path / "journal.sqlite"), Tasks()

    def ask() -> Reply:
        caller = Caller(endpoint, role="model", journal=journal, budget=Budget())
        return asyncio.run(caller.reply((Message("user", (Text("hi"),)),), Request("text")))

    assert (ask().outcome, ask().text) == ("failed", "ticket-2")
    journal.close()


@pytest.mark.parametrize("odd", ["a\0b", "ä\u202eb", "'; DROP TABLE runs; --", '{"x": [1]}', "💥" * 1000])
def test_rows_with_odd_strings_come_back_as_they_went(tmp_path: Path, odd: str):
    journal = Journal(tmp_path / "journal.sqlite")
    journal.begin_run("r", manifest(), [])
    for sample in (odd, odd + "x", "plain"):
        journal.put_turn("r", TurnRecord(sample, 0, 0, {"group": odd}, "text", "[]", Reply("answered", (Text(odd),))))
        journal.put_verdict("r", Verdict(sample, 0, "m", 0.5, odd, variant=odd))
    journal.flush()
    assert {turn.sample for turn in journal.turns("r")} == {odd, odd + "x", "plain"}
    assert all(turn.reply.parts == (Text(odd),) and turn.groups == {"group": odd} for turn in journal.turns("r"))
    assert [(v.reason, v.variant) for v in journal.verdicts("r")] == [(odd, odd)] * 3
    journal.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["run", "weave", "--official", "--data", "{toy}", "--model", "copy", "--judge", "constant/5", "--dry-run"],
            "4 samples, 10 turns",
        ),
        (
            ["run", "--official", "weave", "--data", "{toy}"],
            "--official needs a benchmark before it: weft run weave --official",
        ),
        (["run", "weave", "--histroy", "full"], "weave has no option --histroy; did you mean --history"),
        (
            ["run", "--home", "h", "weave", "--data", "{toy}"],
            "--home needs a benchmark before it: weft run weave --home",
        ),
        (["score", "out", "--data", "{toy}"], "give --benchmark: which benchmark the outputs answer"),
        (["arena", "run", "--help"], "The judge: provider/model@url"),
        (
            [
                "run",
                "weave",
                "--class=Creation",
                "--data",
                "{toy}",
                "--model",
                "copy",
                "--judge",
                "constant/5",
                "--dry-run",
            ],
            "2 samples, 5",
        ),
        (
            [
                "run",
                "weave",
                "--domain",
                "recall",
                "--data={toy}",
                "--model",
                "copy",
                "--judge",
                "constant/5",
                "--dry-run",
            ],
            "1 samples, 3",
        ),
        (["run", "weave", "--help"], "--placement all-first|inline"),
        (["run", "nosuch", "--history", "full"], "unknown benchmark 'nosuch'"),
        (["run", "weave", "--history", "--data", "{toy}"], "--history needs a value"),
        (
            ["run", "imug", "--placement", "inline"],
            "its own are --history, --turns, --official, --class, --domain, --task",
        ),
        (
            ["run", "weave", "--class", "Games", "--data", "{toy}", "--model", "copy", "--judge", "constant/5"],
            "there is Creation, Game, Science",
        ),
    ],
)
def test_a_benchmarks_own_options_are_those_of_its_command_and_mistakes_are_told(
    toy: Path, tmp_path: Path, words: list[str], said: str
):
    given = [word.replace("{toy}", str(toy)) for word in words]
    done = subprocess.run([sys.executable, "-m", "weft", *given], cwd=tmp_path, capture_output=True, text=True)
    assert said in done.stdout + done.stderr and "Traceback" not in done.stderr
