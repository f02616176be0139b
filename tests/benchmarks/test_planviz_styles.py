"""The prompt-style study: wordings by a model on a real socket, or from a file; what keeps a wording to its task; and
the numbers of it."""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import weft
from planviz import evaluate, judged, records, written
from server import Provider, Seen
from waiting import HANGS
from weft.benchmarks.planviz.styles import STYLES
from weft.benchmarks.planviz.wordings import find_faults
from weft.errors import UserError, WeftError
from weft.report.compare import compare
from weft.stats.intervals import mean_interval

Serve = Callable[..., Provider]
PROMPT = 'Draw a walk from Times Square to Central Park with three stops, titled "Sunday", on an A4 sheet.'


@pytest.mark.parametrize(
    ("wording", "wrong"),
    [
        ('Could you sketch a stroll, Times Square to Central Park, 3 stops, headed "Sunday", sheet size A4?', []),
        (PROMPT.upper(), ["it is the request itself"]),
        (" ", ["it is empty"]),
        ('Walk from Times Square to Central Park, three stops, A4, please.', ["it lacks the quotation 'Sunday'"]),
        ('Times Square to Central Park, stops along the way, "Sunday", A4', ["it lacks 3"]),
        ('From Times Square to the park, three stops, "Sunday", A4', ["it lacks the name 'Central'"]),
        ('Times Square to Central Park, three stops, "Sunday", any sheet', ["it lacks a4"]),
    ],
)  # fmt: skip
def test_what_a_wording_must_keep(wording: str, wrong: list[str]):
    assert find_faults(PROMPT, wording) == wrong


def test_numbers_in_words_and_in_other_scripts():
    assert not find_faults("Mark 3 cafes near b2.", "Near b2 mark three cafes.")
    assert not find_faults("画出三个站点的路线。", "请画一条有3个站的路线")
    assert find_faults("画出三个站点的路线。", "请画一条有两个站的路线") == ["it lacks 3"]
    assert not find_faults("Show one of the pages.", "Any page will do: show it.")  # `one` is seldom a number
    assert find_faults("Say it.", "say  it!", []) == [] and find_faults("Say it.", "Tell it.", ["tell it."]) == [
        "it is another wording once more"
    ]


@pytest.mark.parametrize(
    ("prompt", "wording"),
    [
        ("Open 'Settings' on this page.", "On this page, please open 'Settings'."),
        ("Draw what I see (The route is short).", "Please sketch what is seen (a short route)."),
        ("Show Anna's desk at 10am with 1,000 pages.", "Sketch the desk of Anna, 10 am, 1000 pages."),
        ("First a map; Then a list.", "A map first, a list after."),
        ("Plan it. The end is near", "plan the thing, the end being near"),
    ],
)
def test_good_wordings_are_not_turned_away(prompt: str, wording: str):
    assert find_faults(prompt, wording) == []


def test_names_in_other_languages():
    assert find_faults("Show the way to Österreich.", "Show the road to Tirol.") == ["it lacks the name 'Österreich'"]
    assert (
        find_faults("Zeige den Weg und das Ziel auf der Karte.", "Male die Route samt Ende in den Plan.") == []
    )  # every noun has a capital


def reworder(
    drafts: Callable[[Seen, int], list[str]], kept: Callable[[Seen], list[dict[str, Any]]] | None = None
) -> Callable[[Seen], Any]:
    """Model and judge as always; who is asked for wordings says what it is told."""
    times: dict[str, int] = {}

    def answer(seen: Seen) -> Any:
        if seen.body["model"] != "other":
            return judged()(seen)
        schema = seen.body["response_format"]["json_schema"]["schema"]["properties"]["wordings"]
        words = "".join(seen.texts)
        if "lost" in schema["items"]["properties"]:
            found = (
                kept(seen)
                if kept
                else [{"wording": at + 1, "lost": [], "added": []} for at in range(schema["minItems"])]
            )
            return {"role": "assistant", "content": json.dumps({"wordings": found})}
        task = words.split("Request:\n")[1].split("\n")[1]  # after the line where its fence begins
        times[task] = times.get(task, 0) + 1
        texts = drafts(seen, times[task])[: schema["minItems"]]
        return {
            "role": "assistant",
            "content": json.dumps(
                {"wordings": [{"style": at, "wording": one} for at, one in enumerate(texts, start=1)]}
            ),
        }

    return answer


def command(*words: Any) -> "subprocess.CompletedProcess[str]":
    weft_command = Path(sys.executable).parent / "weft"
    return subprocess.run([weft_command, *map(str, words)], capture_output=True, text=True, timeout=HANGS)


def task_of(seen: Seen) -> str:
    return "".join(seen.texts).split("Request:\n")[1].split("\n")[1].removeprefix("Plan ").rstrip(".")


def wordings(seen: Seen, time: int) -> list[str]:
    return [f"Wording {at} of try {time}: plan {task_of(seen)}" for at in range(20)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path / "data")


def study(data: Path, home: Path, server: Provider, **options: Any) -> weft.Run:
    return evaluate(data, home, server, reword=f"openai-chat/other@{server.url}", **options)


def test_each_task_is_given_in_every_wording(data: Path, tmp_path: Path, serve: Serve):
    server = serve(answer=reworder(wordings))
    run = study(data, tmp_path / "home", server, styles=3, sample=2)
    tasks = {turn.groups["of"] for turn in run.turns}
    assert len(run.turns) == 2 * 4 and len(tasks) == 2 and run.record.state == "finished"
    assert [turn.groups["style"] for turn in run.turns][:4] == ["as written", *list(STYLES)[:3]]
    asked = [seen for seen in server.seen if seen.body["model"] == "model"]
    assert sum("Wording" in "".join(seen.texts) for seen in asked) == 6
    others = [seen for seen in server.seen if seen.body["model"] == "other"]
    assert len(others) == 4 and all("key points" in "".join(seen.texts).lower() for seen in others)
    assert {total.role: total.calls for total in run.totals} == {"model": 8, "judge": 24, "reword": 4}


def test_the_same_wordings_serve_another_model(data: Path, tmp_path: Path, serve: Serve):
    """And a stored run is judged again without anyone saying anything anew."""
    server = serve(answer=reworder(wordings))
    first = study(data, tmp_path / "home", server, styles=2, sample=3)
    before = sum(seen.body["model"] == "other" for seen in server.seen)
    second = study(data, tmp_path / "home", server, styles=2, sample=3, model="copy")
    again = weft.judge(first.id, judge="constant/3", home=tmp_path / "home")
    assert sum(seen.body["model"] == "other" for seen in server.seen) == before == 6
    assert first.record.manifest.dataset == second.record.manifest.dataset == again.record.manifest.dataset


def test_a_wording_that_loses_something_is_asked_for_again(data: Path, tmp_path: Path, serve: Serve):
    """First the second wording is a copy, which the rule sees; then a judge of wordings objects to it once more."""

    def drafts(seen: Seen, time: int) -> list[str]:
        return [wordings(seen, 1)[0], f"Plan {task_of(seen)}."] if time == 1 else wordings(seen, time)

    server = serve(answer=reworder(drafts))
    run = study(data, tmp_path / "home", server, styles=2, sample=1)
    others = ["".join(seen.texts) for seen in server.seen if seen.body["model"] == "other"]
    assert len(others) == 4 and sum("it is the request itself" in text for text in others) == 1
    assert [turn.groups["style"] for turn in run.turns] == ["as written", *list(STYLES)[:2]]


def test_a_wording_that_stays_wrong_is_left_out_and_that_is_said(data: Path, tmp_path: Path, serve: Serve):
    def kept(seen: Seen) -> list[dict[str, Any]]:
        due = seen.body["response_format"]["json_schema"]["schema"]["properties"]["wordings"]["minItems"]
        return [{"wording": at + 1, "lost": [], "added": ["a hint"] if at == 0 else []} for at in range(due)]

    server = serve(answer=reworder(wordings, kept))
    more = ("--sample", 1, "--styles", 3, "--reword", f"openai-chat/other@{server.url}")
    done = command(
        "run",
        "planviz",
        "--data",
        data,
        "--home",
        tmp_path / "home",
        "--model",
        "copy",
        "--judge",
        "constant/max",
        *more,
    )
    assert done.returncode == 0 and "polite request: this wording is left out: it added: a hint" in done.stderr
    assert "is asked first (reword)" in done.stderr


def test_who_answers_nonsense_ends_the_study_before_anyone_is_asked(data: Path, tmp_path: Path, serve: Serve):
    server = serve(
        answer=lambda seen: (
            judged()(seen) if seen.body["model"] != "other" else {"role": "assistant", "content": "Sure!"}
        )
    )
    with pytest.raises(
        UserError,
        match=r"gave no usable wording of any of 1 tasks; the first problem: .*nothing usable came back",
    ):
        study(data, tmp_path / "home", server, styles=2, sample=1)


def test_a_reworder_that_is_gone_ends_the_command_and_nothing_is_lost(data: Path, tmp_path: Path, serve: Serve):
    server = serve(answer=reworder(wordings))
    with pytest.raises(WeftError, match="cannot reach http://127.0.0.1:9"):
        evaluate(data, tmp_path / "home", server, reword="openai-chat/other@http://127.0.0.1:9/v1", styles=2, sample=1)
    assert not [seen for seen in server.seen if seen.body["model"] == "model"]
    run = study(data, tmp_path / "home", server, styles=2, sample=1)
    assert run.record.state == "finished" and len(run.turns) == 3


def test_one_task_that_is_never_answered_costs_no_other(data: Path, tmp_path: Path, serve: Serve):
    """What was answered is kept: the same command asks for what is missing alone."""
    refused = {"yes": True}

    def answer(seen: Seen) -> Any:
        return reworder(wordings)(seen)

    async def fault(seen: Seen, times: int, request: web.Request) -> web.Response | None:
        bad = refused["yes"] and seen.body["model"] == "other" and "Plan ui_edit." in "".join(seen.texts)
        return web.Response(status=400, text="content policy") if bad else None

    server = serve(answer=answer, fault=fault)
    with pytest.raises(WeftError, match=r"ui_edit-\w+ could not be reworded: .*--reword FILE"):
        study(data, tmp_path / "home", server, styles=2)
    before = [seen for seen in server.seen if seen.body["model"] == "other"]
    refused["yes"] = False
    run = study(data, tmp_path / "home", server, styles=2)
    after = [seen for seen in server.seen if seen.body["model"] == "other"][len(before) :]
    assert len(after) == 2 and all("Plan ui_edit." in "".join(seen.texts) for seen in after)
    # calls of the command that came to no run are the run's
    reworded = next(total for total in run.totals if total.role == "reword")
    assert (reworded.answered, reworded.calls) == (12, 13)


def test_a_key_in_an_address_is_not_shown(data: Path, tmp_path: Path):
    url = "openai-chat/other@http://127.0.0.1:9/v1?api_key=SeCr3tSeCr3t99x"
    done = command(
        "run",
        "planviz",
        "--data",
        data,
        "--home",
        tmp_path / "home",
        "--model",
        "copy",
        "--judge",
        "constant/max",
        "--reword",
        url,
    )
    assert done.returncode == 2 and "SeCr3t" not in done.stdout + done.stderr


def test_wordings_of_one_task_are_one_thing_to_tests_of_significance(data: Path, tmp_path: Path, serve: Serve):
    server = serve(answer=reworder(wordings))
    first = study(data, tmp_path / "home", server, styles=3)
    second = study(data, tmp_path / "home", server, styles=3, model="copy")
    made = compare(first, second)
    assert next(row for row in made.rows if row.name == "correctness").difference.dialogues == 6


def test_wordings_of_a_run_can_be_given_to_another_elsewhere(data: Path, tmp_path: Path, serve: Serve):
    server = serve(answer=reworder(wordings))
    first = study(data, tmp_path / "home", server, styles=2, sample=3)
    file = tmp_path / "w.jsonl"
    made = command("data", "wordings", first.id, "--out", file, "--home", tmp_path / "home")
    assert made.returncode == 0 and made.stdout.strip() == f"{file}: 6 wordings of 3 tasks"
    second = evaluate(data, tmp_path / "elsewhere", server, reword=str(file))
    assert [(turn.sample, turn.groups) for turn in second.turns] == [(turn.sample, turn.groups) for turn in first.turns]
    assert second.record.manifest.dataset.digest == first.record.manifest.dataset.digest
    again = command("data", "wordings", first.id, "--out", file, "--home", tmp_path / "home")
    assert again.returncode == 2 and "exists already" in again.stderr
    plain = evaluate(data, tmp_path / "plain", server, limit=1)
    none = command("data", "wordings", plain.id, "--out", tmp_path / "n", "--home", tmp_path / "plain")
    assert none.returncode == 2 and "has no wordings" in none.stderr


def test_a_dry_run_asks_nobody(data: Path, tmp_path: Path, serve: Serve):
    server = serve(answer=reworder(wordings))
    roles = [
        word
        for role, name in (("model", "model"), ("judge", "judge"), ("reword", "other"))
        for word in (f"--{role}", f"openai-chat/{name}@{server.url}")
    ]
    done = command(
        "run", "planviz", "--data", data, "--home", tmp_path / "home", "--sample", 2, "--styles", 3, "--dry-run", *roles
    )
    told = done.stdout
    assert done.returncode == 0 and not server.seen
    assert "8 samples, 8 turns" in told and "reword: 4 calls to make" in told and "model: 8 calls to make" in told


def test_wordings_from_a_file(data: Path, tmp_path: Path, serve: Serve):
    server = serve(answer=judged())
    entries = [
        {"task": "ui_gen/0", "style": "terse", "prompt": "ui_gen, now."},
        {"task": "ui_gen/0", "prompt": "Please be so kind as to plan ui_gen."},
        {"task": "travel_plan_edit/0", "style": "terse", "prompt": "travel_plan_edit. Go."},
        {"task": "nowhere/7", "prompt": "x"},
    ]
    for name, text in (("w.json", json.dumps(entries)), ("w.jsonl", "\n".join(map(json.dumps, entries)))):
        (tmp_path / name).write_text(text)
        run = evaluate(data, tmp_path / name.replace(".", "-"), server, reword=str(tmp_path / name))
        styles = [(turn.groups["of"].rpartition("-")[0], turn.groups["style"]) for turn in run.turns]
        assert styles == [
            ("travel_plan_edit", "as written"),
            ("travel_plan_edit", "terse"),
            ("ui_gen", "as written"),
            ("ui_gen", "terse"),
            ("ui_gen", "wording 2"),
        ]
        assert run.name.endswith(f"[reword {name}]")  # where it lies is nobody's business
    shown = {"".join(seen.texts) for seen in server.seen if not seen.is_judge}
    assert "travel_plan_edit. Go." in shown and "Please be so kind as to plan ui_gen." in shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[{}]", "entry 0: give `task` and `prompt` as texts"),
        ('{"task": "ui_gen/0"}', "entry 0: give `task` and `prompt`"),
        ("[", "broken JSON"),
        ("{}\n{", "line 2: broken JSON"),
        ('[{"task": "ui_gen/0", "prompt": "x", "style": "as written"}]', "is the style of the dataset's own prompts"),
        ('[{"task": "ui_gen/0", "prompt": "Plan ui_gen."}]', "has no wording of any task"),
        ("[]", "has no wording of any task of this dataset"),
        ('[{"task": "other", "prompt": "x"}]', "has no wording of any task of this dataset"),
    ],
)
def test_a_file_that_cannot_be_used(text: str, said: str, data: Path, tmp_path: Path):
    (tmp_path / "w.json").write_text(text)
    with pytest.raises(UserError, match=said.replace("(", r"\(")):
        weft.evaluate(
            "planviz",
            data=data,
            model="copy",
            judge="constant/max",
            home=tmp_path / "home",
            reword=str(tmp_path / "w.json"),
        )


def test_what_does_not_go_together(data: Path, tmp_path: Path):
    more: dict[str, Any] = {"data": data, "model": "copy", "judge": "constant/max", "home": tmp_path / "home"}
    with pytest.raises(UserError, match="--styles needs wordings"):
        weft.evaluate("planviz", styles=3, **more)
    with pytest.raises(UserError, match="option styles"):
        weft.evaluate("planviz", styles=51, reword="x.json", **more)
    with pytest.raises(UserError, match=r"nowhere.json cannot be read"):
        weft.evaluate("planviz", reword="nowhere.json", **more)


def test_a_sample_is_even_over_kinds_and_the_same_each_time(tmp_path: Path):
    lists = {name: [{**some[0], "prompt": f"Task {at}."} for at in range(10)] for name, some in records().items()}
    data = written(tmp_path / "many", lists)
    more: dict[str, Any] = {"data": data, "model": "copy", "judge": "constant/max"}
    first = weft.evaluate("planviz", sample=12, home=tmp_path / "a", **more)
    again = weft.evaluate("planviz", sample=12, home=tmp_path / "b", **more)
    other = weft.evaluate("planviz", sample=12, seed=1, home=tmp_path / "c", **more)
    kinds = [turn.sample.rpartition("-")[0] for turn in first.turns]
    assert len(kinds) == 12 and {kinds.count(kind) for kind in kinds} == {2}
    assert first.id == again.id != other.id and {turn.sample for turn in first.turns} != {
        turn.sample for turn in other.turns
    }


def test_means_and_deviations_over_wordings(data: Path, tmp_path: Path, serve: Serve):
    def met(seen: Seen) -> list[bool]:
        words = "".join(seen.texts)
        return [True, "Wording 0" not in words, "Wording 1" not in words and "Wording 0" not in words]

    server = serve(answer=reworder(wordings))
    plain = server.answer
    server.answer = lambda seen: judged(met)(seen) if seen.body["model"] == "judge" else plain(seen)
    run = study(data, tmp_path / "home", server, styles=3)
    table = next(table for table in run.tables() if table.title.endswith("prompt styles"))
    cells = {name: cell.value for name, cell in table.rows[0].cells.items()}
    shares = [1 / 3, 2 / 3, 1.0]
    assert cells["Cor mean"] == pytest.approx(statistics.fmean(shares), abs=1e-4)
    assert cells["Cor deviation"] == pytest.approx(statistics.stdev(shares), abs=1e-4)
    assert cells["Cor variation"] == pytest.approx(100 * statistics.stdev(shares) / statistics.fmean(shares), abs=0.1)
    assert cells["Cor as written"] == 1.0 and cells["Vis deviation"] == 0.0 and cells["Ef mean"] == 0.6
    by_style = next(table for table in run.tables() if "by style of wording" in table.title)
    assert {row.name: row.cells["Cor"].value for row in by_style.rows} == {
        "as written": 1.0,
        **{style: pytest.approx(share, abs=1e-4) for style, share in zip(list(STYLES)[:3], shares, strict=True)},
    }
    tasks = next(table for table in run.tables() if "tasks over their wordings" in table.title)
    assert len(tasks.rows) == 6 and {row.cells["wordings"].value for row in tasks.rows} == {3.0}
    overall = run.table().cells(f"{run.name}, editing")["Cor"]
    one_task_each = [(1 / 3, {subtask: [1.0, *shares]}) for subtask in ("route", "workflow", "ui")]
    assert overall.expected == 12
    assert (overall.low, overall.high) == mean_interval(one_task_each), "wordings of one task are one cluster"
