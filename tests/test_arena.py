"""The arena: which battles are drawn, what a judge is shown, both orders, rules, unscored battles, resuming, pages,
files, dialogues."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from forked import run_forked
from server import Provider, Seen, judge_answer
from weaver import evaluate, playing, prompt, written
from weft.arena.contestants import collect_items, name_contestants
from weft.arena.official import BattleFacts, read_battle_facts
from weft.arena.official_reading import read_released_verdict, to_winner
from weft.arena.protocol import Arena, decided_battles, judged_battles, official_battles
from weft.arena.sampling import draw_pairings
from weft.calls.caller import RetryPolicy
from weft.errors import UserError

Serve = Callable[..., Provider]


# sampling


def test_battles_as_specified_and_none_twice():
    """Two about each item: neighbours in a ring, and a pair of others. As many for each model as can be."""
    items = {f"i{at}": ["a", "b", "c", "d", "e"] for at in range(50)}
    groups = {item: "g" if at < 25 else "h" for at, item in enumerate(items)}
    made = draw_pairings(items, groups, 2, 0)
    assert len(made) == 100 and made == draw_pairings(items, groups, 2, 0) != draw_pairings(items, groups, 2, 1)
    of = [[(one.first, one.second) for one in made if one.item == item] for item in items]
    assert all(not set(first) & set(second) for first, second in of)
    ring = [pairs[0] for pairs in of[:25]]
    assert len(set(ring)) == 5 and ring[:5] == ring[5:10] and [a[1] for a in ring[:4]] == [b[0] for b in ring[1:5]]
    counts = Counter(name for pairs in of for name in pairs[0])
    assert set(counts.values()) == {20}


@pytest.mark.parametrize("each", [1, 2, 3, 4, 0])
def test_so_many_battles_not_doubled(each: int):
    items = {f"i{at}": ["a", "b", "c"] for at in range(10)}
    made = draw_pairings(items, dict.fromkeys(items, ""), each, 0)
    assert len(made) == 10 * (min(each, 3) or 3)
    assert all(count == 1 for count in Counter((one.item, frozenset((one.first, one.second))) for one in made).values())


def test_two_models_and_items_that_one_lacks():
    items = {"x": ["a", "b"], "y": ["b", "c"], "z": ["a", "b", "c"]}
    made = draw_pairings(items, dict.fromkeys(items, ""), 1, 0)
    assert [one.item for one in made] == ["x", "y", "z"] and {made[0].first, made[0].second} == {"a", "b"}
    assert {made[1].first, made[1].second} == {"b", "c"}
    two = draw_pairings({f"i{at}": ["a", "b"] for at in range(10)}, {f"i{at}": "" for at in range(10)}, 2, 0)
    assert len(two) == 10 and Counter(one.first for one in two) == {"a": 5, "b": 5}, "both stand first as often"


# battles


def says(winner: Callable[[Seen], Any]) -> Callable[[Seen], dict[str, Any]]:
    def reply(seen: Seen) -> dict[str, Any]:
        keys = seen.body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
        if "winner" in keys:
            found = winner(seen)
            return {
                "role": "assistant",
                "content": json.dumps({"reasoning": "because", "winner": found}) if found else "no",
            }
        if "Correctness" in keys:
            return {
                "role": "assistant",
                "content": json.dumps({name: {"Justification": "so", "Score": 6} for name in keys}),
            }
        return playing()(seen)

    return reply


def shown(seen: Seen) -> tuple[str, str]:
    """What stands as A and as B, in words."""
    text = "".join(part for part in seen.shape[-1][1] if not part.startswith("sha256:"))
    first, _, second = text.partition("OUTPUT_B:")
    return first.partition("OUTPUT_A:")[2], second


def who(seen: Seen) -> tuple[str, str]:
    """Who stands as A and as B, by what only they say."""
    a, b = (re.search(r"picture \d+, (\w{6})", side) for side in shown(seen))
    assert a and b
    return a[1], b[1]


def stored(
    provider: Provider, tmp_path: Path, names: tuple[str, ...] = ("alpha", "beta", "gamma"), count: int = 6
) -> list[weft.Run]:
    data = written(tmp_path / "data", [prompt(f"p{at}", f"picture {at}", category="Daily Life") for at in range(count)])
    return [evaluate(provider, data, tmp_path / "home", model=f"openai-chat/{name}@{provider.url}") for name in names]


QUICK = RetryPolicy(tries=3, base=0.001, cap=0.002)


def fight(tmp_path: Path, provider: Provider, runs: list[weft.Run], **more: Any) -> weft.Run:
    return weft.battle(runs, home=tmp_path / "home", **{"judge": f"openai-chat/judge@{provider.url}", **more})


def test_a_judge_that_always_says_a_is_biased_and_decides_nothing(tmp_path: Path, serve: Serve):
    provider = serve(answer=says(lambda seen: "A"))
    arena = fight(tmp_path, provider, stored(provider, tmp_path))
    rates, judge = arena.tables()
    assert all(
        row.cells["with tie .5"].value == 50.0 and row.cells["without tie"].value is None
        for row in rates.rows
        if row.arithmetic == "strict"
    )
    cells = judge.rows[0].cells
    assert (cells["first place wins"].value, cells["both orders agree"].value, cells["ties"].value) == (
        100.0,
        0.0,
        100.0,
    )
    assert all("the two orders contradict each other" in verdict.reason for verdict in arena.verdicts)
    one = fight(tmp_path, provider, stored(provider, tmp_path), both_orders=False)
    assert one.tables()[1].rows[0].cells["ties"].value == 0.0 and one.id != arena.id
    official = {row.name: row.cells for row in rates.rows if row.arithmetic == "official"}
    plain = {row.name: row.cells for row in one.tables()[0].rows}
    assert all(official[name]["FDT"].value == plain[name]["FDT"].value for name in official), (
        "one order is what the scripts have"
    )


def test_the_better_one_wins_whichever_way_round(tmp_path: Path, serve: Serve):
    """The model's name decides what it draws, so its pictures tell who it is."""
    provider = serve(answer=says(lambda seen: "A" if who(seen)[0] > who(seen)[1] else "B"))
    runs = stored(provider, tmp_path)
    arena = fight(tmp_path, provider, runs, battles=0)
    assert arena.tables()[1].rows[0].cells["both orders agree"].value == 100.0
    assert arena.table().rows[0].cells["battles"].value == 12 and len(arena.verdicts) == 18
    battles = judged_battles(arena.results())
    assert len(battles) == 36 and {one.first for one in battles} == {
        "openai-chat/alpha",
        "openai-chat/beta",
        "openai-chat/gamma",
    }
    assert len(official_battles(arena.results())) == 18


def test_what_the_judge_is_shown(tmp_path: Path, serve: Serve):
    provider = serve(answer=says(lambda seen: "Tie(B)"))
    runs = stored(provider, tmp_path, ("alpha", "beta"), 1)
    before = len(provider.seen)
    arena = fight(tmp_path, provider, runs)
    asked = provider.seen[before:]
    assert len(asked) == 2 and [role for role, _ in asked[0].shape] == ["system", "user"]
    assert asked[0].pictures == asked[1].pictures[::-1] and shown(asked[0])[0] != ""
    user = "".join(part for part in asked[0].shape[1][1] if not part.startswith("sha256:"))
    assert user.count(" begins\n") == 3 and user.index("INPUT:") < user.index("OUTPUT_A:") < user.index("OUTPUT_B:")
    assert "alpha" not in user and "beta" not in user, "nobody is named"
    schema = asked[0].body["response_format"]["json_schema"]["schema"]["properties"]["winner"]
    assert schema["enum"] == ["A", "B", "Tie(A)", "Tie(B)"]
    assert [read_battle_facts(one).winner for one in arena.verdicts[0].merged_from] == [
        "Tie(B)",
        "Tie(A)",
    ] and arena.verdicts[0].value == 0.5


def test_who_has_no_answer_loses_without_a_judge(tmp_path: Path, serve: Serve):
    def answer(seen: Seen) -> dict[str, Any]:
        if seen.body["model"] == "beta":
            return {"role": "assistant", "content": "", "refusal": "no"}
        return says(lambda seen: "A")(seen)

    provider = serve(answer=answer)
    runs = stored(provider, tmp_path, ("alpha", "beta"), 4)
    arena = fight(tmp_path, provider, runs)
    assert {row.name: row.cells["with tie 0"].value for row in arena.table().rows if row.arithmetic != "official"} == {
        "openai-chat/alpha": 100.0,
        "openai-chat/beta": 0.0,
    }
    assert (
        all(verdict.by == "rule" for verdict in arena.verdicts)
        and arena.tables()[1].rows[0].cells["by rule"].value == 4
    )


def test_an_order_that_cannot_be_judged_leaves_the_battle_unscored(tmp_path: Path, serve: Serve):
    moody = ["p0"]
    provider = serve(
        answer=says(
            lambda seen: None if moody and "picture 0" in seen.texts[1] and who(seen)[0] > who(seen)[1] else "A"
        )
    )
    runs = stored(provider, tmp_path, ("alpha", "beta"), 2)
    arena = fight(tmp_path, provider, runs, concurrency=1, retry_policy=QUICK)
    unscored = [verdict for verdict in arena.verdicts if verdict.value is None]
    assert len(unscored) == 1 and unscored[0].reason.startswith("one of its two orders could not be judged: ")
    assert arena.table().rows[0].cells["battles"].value == 1, "it is in no rate"
    count = provider.count
    moody.clear()
    again = fight(tmp_path, provider, runs, concurrency=1)
    assert (
        again.id == arena.id
        and provider.count == count + 1
        and all(verdict.value is not None for verdict in again.verdicts)
    )


def test_answers_that_were_lost_are_not_fought_about_and_that_is_told(tmp_path: Path, serve: Serve):
    file = tmp_path / "own.py"
    file.write_text(
        "def model(messages, want):\n    if '1' in str(messages): raise OSError('disk')\n    return 'words'\n"
    )
    provider = serve(answer=says(lambda seen: "A"))
    (first,) = stored(provider, tmp_path, ("alpha",), 3)
    second = evaluate(provider, tmp_path / "data", tmp_path / "home", model=f"{file}:model")
    arena = fight(tmp_path, provider, [first, second])
    assert len(arena.verdicts) == 2 and all(verdict.value is not None for verdict in arena.verdicts)
    told = weft_(
        "arena", "run", first.id, second.id, "--judge", f"openai-chat/judge@{provider.url}", "--home", tmp_path / "home"
    )
    assert (
        "1 of 3 answers are missing through no fault of its own" in told.stderr
        and "they are not compared" in told.stderr
    )


def test_unfinished_runs_and_runs_of_battles_do_not_fight(tmp_path: Path, serve: Serve):
    provider = serve(answer=says(lambda seen: "A"))
    first, second = stored(provider, tmp_path, ("alpha", "beta"), 2)
    arena = fight(tmp_path, provider, [first, second])
    with pytest.raises(UserError, match="is no run of a model"):
        fight(tmp_path, provider, [arena, first])
    first.turns.pop()
    with pytest.raises(UserError, match="has 1 of its 2 turns: finish it first"):
        name_contestants([first, second])


def test_repeats_are_averaged_within_an_order(tmp_path: Path, serve: Serve):
    provider = serve(answer=says(lambda seen: "A"))
    arena = fight(tmp_path, provider, stored(provider, tmp_path, ("alpha", "beta"), 2), judge_repeats=3)
    assert all(
        len(verdict.merged_from) == 6 and read_battle_facts(verdict).winner == "Tie" for verdict in arena.verdicts
    )
    assert arena.tables()[0].rows[0].cells["battles"].value == 2 and len(judged_battles(arena.results())) == 4
    one = fight(
        tmp_path, provider, stored(provider, tmp_path, ("alpha", "beta"), 2), judge_repeats=3, both_orders=False
    )
    assert one.tables()[0].rows[0].cells["battles"].value == 2, "a judgement that was repeated is no second battle"


def test_half_judged_battles_are_none(tmp_path: Path):
    from weft.types import Verdict

    ab = Verdict("s", 0, "battle", 1.0, detail=BattleFacts("A"), variant="order AB")
    assert [one.value for one in Arena().merge_variants([ab])] == [None]
    one = Verdict("s", 0, "battle", 1.0, detail=BattleFacts("A"), variant="one order")
    assert [read_battle_facts(verdict).winner for verdict in Arena().merge_variants([one])] == ["A"]


@pytest.mark.parametrize(
    ("ab", "ba", "due"),
    [
        (("A", "Tie(A)"), ("A", "A"), "A"),
        (("A", "A"), ("A", "B"), "Tie(A)"),
        (("A", "B"), ("A", "B"), "Tie"),
        (("A", "A"), ("B", "B"), "Tie"),
    ],
)
def test_the_table_has_what_the_page_says(ab: tuple[str, str], ba: tuple[str, str], due: str):
    """Repeats are averaged within an order, orders between each other; `ba` as the first one sees it."""
    from weft.benchmarks.base import RunResults
    from weft.stats.battles import LEAN
    from weft.types import Verdict

    said = [(f"order AB, repeat {at}", one) for at, one in enumerate(ab, 1)]
    said += [(f"order BA, repeat {at}", one) for at, one in enumerate(ba, 1)]
    some = [
        Verdict("s", 0, "battle", (LEAN[one] + 1) / 2, detail=BattleFacts(one), variant=variant)
        for variant, one in said
    ]
    (verdict,) = Arena().merge_variants(some)
    run = RunResults("r", {"s": {"item": "i", "first": "x", "second": "y"}}, [verdict])
    assert read_battle_facts(verdict).winner == decided_battles(run)[0].winner == due
    rates = next(iter(Arena().tables([run])))
    won = {"A": 100.0, "B": 0.0}.get(due, 0.0)
    assert next(row for row in rates.rows if row.name == "x").cells["with tie 0"].value == won


def test_agreement_is_about_what_judges_saw(tmp_path: Path, serve: Serve):
    def answer(winner: str) -> Callable[[Seen], dict[str, Any]]:
        def reply(seen: Seen) -> dict[str, Any]:
            if seen.body["model"] == "beta" and seen.texts[-1].endswith(("0", "1")):
                return {"role": "assistant", "content": "", "refusal": "no"}
            return says(lambda seen: winner)(seen)

        return reply

    provider, other = serve(answer=answer("A")), serve(answer=answer("B"))
    runs = stored(provider, tmp_path, ("alpha", "beta"), 5)
    first = fight(tmp_path, provider, runs)
    second = fight(tmp_path, provider, runs, judge=f"openai-chat/judge@{other.url}")
    table = list(Arena().tables([first.results("a"), second.results("b")]))[-1]
    assert (
        table.title.startswith("Agreement")
        and table.rows[0].cells["FDT"].value == 0.0
        and table.rows[0].cells["FDT"].scored == 6
    )
    told = weft_("arena", "export", first.id, "--out", tmp_path / "v.json", "--home", tmp_path / "home")
    assert "2 battles needed no judge" in told.stderr and len(json.loads((tmp_path / "v.json").read_text())) == 6


def test_runs_that_cannot_meet(tmp_path: Path, serve: Serve, toy: Path):
    provider = serve(answer=says(lambda seen: "A"))
    runs = stored(provider, tmp_path, ("alpha",), 1)
    other = written(tmp_path / "other", [prompt("q", "picture")])
    strange = evaluate(provider, other, tmp_path / "home")
    weave = weft.evaluate("weave", data=toy, model="copy", judge="constant/max", home=tmp_path / "home")
    for second, why in ((runs[0], "given twice"), (strange, "different datasets"), (weave, "no item in common")):
        with pytest.raises(UserError, match=why):
            fight(tmp_path, provider, [runs[0], second])
    with pytest.raises(UserError, match="at least two runs"):
        fight(tmp_path, provider, runs)


def test_dialogues_of_several_turns_are_fought_over_as_a_whole(tmp_path: Path, serve: Serve, toy: Path):
    def answer(seen: Seen) -> dict[str, Any]:
        keys = seen.body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
        return (
            says(lambda seen: "B")(seen)
            if "winner" in keys
            else judge_answer(seen)
            if seen.is_judge
            else playing()(seen)
        )

    provider = serve(answer=answer)
    home = tmp_path / "home"
    first = weft.evaluate("weave", data=toy, model="copy", judge="constant/max", home=home)
    second = weft.evaluate("weave", data=toy, model="reference", judge="constant/max", home=home)
    arena = fight(tmp_path, provider, [first, second])
    assert len(arena.verdicts) == len({turn.sample for turn in first.turns})
    asked = provider.seen[0]
    user = "".join(part for part in asked.shape[1][1] if not part.startswith("sha256:"))
    assert "[Request 2]" in user and user.count("[Answer 2]") == 2


def test_scores_of_single_answers(tmp_path: Path, serve: Serve):
    provider = serve(answer=says(lambda seen: "A"))
    runs = stored(provider, tmp_path, ("alpha", "beta"), 3)
    scored = fight(tmp_path, provider, runs, single=True)
    table = scored.table()
    assert [row.cells["Overall"].value for row in table.rows] == pytest.approx([6.0, 6.0]) and table.rows[0].cells[
        "items"
    ].value == 3
    assert len(scored.verdicts) == 6 * 7 and scored.id.startswith("arena-scores-answers-")


# the released script


@pytest.mark.parametrize(
    ("said", "stored_as", "counts"),
    [
        ("A", "A", "A"), ("Both are", "B", "B"), ("As good", "A", "A"), ("Answer: B", "A", "A"), ("Tie(A)", "Tie(A)", "Tie(A)"),
        ("Tie (A is better)", "Tie ()", "Tie"), ("tie(B)", "tie(B)", "Tie"), ("the first, A", "Tie(A)", "Tie(A)"), ("neither", None, None),
        ("Tie", "Tie)", "Tie"), ("", None, None),
    ],
)  # fmt: skip
def test_what_the_released_script_makes_of_replies(said: str, stored_as: str | None, counts: str | None):
    assert read_released_verdict(said) == stored_as
    assert stored_as is None or to_winner(stored_as) == counts


def test_words_of_a_released_prompt_are_read():
    from weft.types import Question, TurnRef

    asked = Question(("battle",), (), {}, TurnRef(), text_only=True, variant="order AB")
    for said, due in (("A", "A"), (" tie(b). ", "Tie(B)"), ("**B**", "B")):
        assert Arena().parse_text(asked, said) == {"winner": due}
    for said, due in (("A is better", "A"), ("Tie(B is better)", "Tie(B)"), ("Tie (A is better).", "Tie(A)")):
        assert Arena().parse_text(asked, said) == {"winner": due}, "as an open judge is told to"
    assert (
        Arena().parse_text(asked, "Both are good") is None and Arena().parse_text(asked, "A is better than B") is None
    )


def test_an_open_judge_sees_images_as_they_are(tmp_path: Path, serve: Serve):
    script = tmp_path / "IntJudge_judge_AB.py"
    script.write_text('SYSTEM_MESSAGE = "Be a judge."\nEND = "\\nSay which: \\n"\n')

    def answer(seen: Seen) -> dict[str, Any]:
        return {"role": "assistant", "content": "Tie(A is better)"} if seen.is_judge else playing()(seen)

    provider = serve(answer=answer)
    runs = stored(provider, tmp_path, ("alpha", "beta"), 2)
    drawings = {image.digest for run in runs for turn in run.turns for image in turn.reply.images}
    arena = fight(tmp_path, provider, runs, prompts=f"official:{script}")
    asked = provider.seen[-1]
    assert asked.body["max_tokens"] == 128 and "response_format" not in asked.body
    assert asked.shape[0] == ("system", ["Be a judge."]) and asked.shape[1][1][-1] == "\nSay which: \n"
    sent = {part.removeprefix("sha256:") for part in asked.shape[1][1] if part.startswith("sha256:")}
    assert sent and any(digest.startswith(tuple(sent)) or digest in sent for digest in drawings), "not squashed"
    assert arena.verdicts and all(verdict.value == 0.5 for verdict in arena.verdicts), "each order leans to its first"


def test_published_rates_beside_the_real_items_alone():
    found = list(Arena().tables([]))
    assert [len(table.rows) for table in found] == [11, 11, 15, 15]
    assert next(row for row in found[0].rows if row.name == "Human").cells["FDT"].value == 83.28


# files, pages and commands


def weft_(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_forked(*map(str, arguments), cwd=Path.cwd())


def test_commands(tmp_path: Path, serve: Serve):
    provider = serve(answer=says(lambda seen: "A" if len(shown(seen)[0]) % 2 else "Tie(A)"))
    runs = stored(provider, tmp_path, ("alpha", "beta"), 3)
    home = ["--home", tmp_path / "home"]
    ids = [run.id for run in runs]
    judge = ["--judge", f"openai-chat/judge@{provider.url}"]
    dry = weft_("arena", "run", *ids, *judge, *home, "--dry-run")
    assert dry.returncode == 0 and "judge: 6 calls to make" in dry.stdout
    none = weft_("arena", "table", *home)
    assert none.returncode == 2 and "there is no such run" in none.stderr
    done = weft_("arena", "run", *ids, *judge, *home)
    assert done.returncode == 0 and "Win rates, judged by openai-chat/judge" in done.stdout, done.stderr
    table = weft_("arena", "table", *home, "--format", "csv")
    assert table.returncode == 0 and "openai-chat/alpha" in table.stdout
    out = tmp_path / "v.json"
    assert (
        weft_("arena", "export", "last", "--out", out, *home).returncode == 0 and len(json.loads(out.read_text())) == 6
    )
    assert weft_("arena", "export", "last", "--out", out, *home).returncode == 2
    agree = weft_("arena", "agree", "last", out, *home, "--format", "csv")
    assert agree.returncode == 0 and ",FDT,100.00" in agree.stdout
    report = weft_("report", "last", *home, "--out", tmp_path / "report")
    assert report.returncode == 0
    page = (tmp_path / "report" / "d" / "0.html").read_text()
    assert "A: <bdi>" not in page and page.count('class="column"') == 2 and "order AB" in page and "because" in page
    assert "Win rates" in (tmp_path / "report" / "index.html").read_text()
    assert weft_("runs", *home).returncode == 0 and "named twice" in weft_("compare", "last", "last", *home).stderr
    assert weft_("arena", "run", *ids, *home).returncode == 2
    wrong = weft_("arena", "table", ids[0], *home)
    assert wrong.returncode == 2 and "is no run of battles" in wrong.stderr
    scored = weft_("arena", "score", *ids, *judge, *home)
    assert scored.returncode == 0 and weft_("arena", "scores", "last", *home).returncode == 0
    assert weft_("judge", "last", "--judge", "constant/max", *home).returncode == 2


def test_items_that_one_run_lacks(tmp_path: Path, serve: Serve):
    provider = serve(answer=says(lambda seen: "A"))
    data = written(tmp_path / "data", [prompt(f"p{at}", f"picture {at}") for at in range(4)])
    first = evaluate(provider, data, tmp_path / "home")
    second = evaluate(provider, data, tmp_path / "home", model=f"openai-chat/other@{provider.url}", limit=2)
    assert [len(item.answers) for item in collect_items(name_contestants([first, second]))] == [2, 2, 1, 1]
    arena = fight(tmp_path, provider, [first, second])
    assert len(arena.verdicts) == 2
