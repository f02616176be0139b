"""`official` of WEAVE is what the released scripts send and compute: inputs in tests/test_history.py, the judge and the
arithmetic here. `python -m conformance weave CHECKOUT` shows the same beside the scripts themselves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pil

import weft
from server import Provider, Seen, drawn, drawn_as
from toy import toy_records, write_weave
from weft.benchmarks.weave import Weave
from weft.benchmarks.weave.domains import CLASSES
from weft.benchmarks.weave.official import OFFICIAL, strict_points
from weft.benchmarks.weave.tables import SHORT_NAMES, build_metric_cells, tables
from weft.calls.caller import RetryPolicy
from weft.types import OfficialReading, Question, TurnRef, Verdict

Serve = Callable[..., Provider]
PROMPTS = '''
prompt_keypoint_checklist = """Points of <image> are:
"""
prompt_visual_consistency = """Sameness of <image> with:
"""
prompt_image_quality = """Quality of <image>."""
prompt_txt_acc = """Grade {{}}. Right: {standard_answer} Said: {generated_answer}"""
'''


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "repo" / "eval").mkdir(parents=True)
    (tmp_path / "repo" / "eval" / "prompts.py").write_text(PROMPTS)
    return tmp_path / "repo"


def outputs(folder: Path, without: tuple[str, ...] = ()) -> Path:
    """Everything that the toy's dialogue 7 makes, under official names."""
    (folder / "imgs").mkdir(parents=True)
    made: dict[str, bytes] = {"toy_2.png": drawn("second"), "toy_1_1.txt": b" four\n", "toy_3.png": drawn("third")}
    for name, data in made.items():
        if name not in without:
            (folder / "imgs" / name).write_bytes(data)
    return folder


def scored(tmp_path: Path, provider: Provider, folder: Path, **options: Any) -> weft.Run:
    data = tmp_path / "data"
    if not data.exists():
        write_weave(data, [record for record in toy_records() if record["idx"] == 7])
    judge, quick = f"openai-chat/judge@{provider.url}", RetryPolicy(tries=2, base=0.001, cap=0.002)
    home = tmp_path / f"home {len(list(tmp_path.iterdir()))}"
    return weft.evaluate(
        "weave", data=data, model=f"folder/{folder}", judge=judge, home=home, retry_policy=quick, **options
    )


def saying(text: str) -> Callable[[Seen], dict[str, Any]]:
    return lambda seen: {"role": "assistant", "content": text}


FIVE = '{"score": 5, "reasoning": "x"}'


def texts(provider: Provider) -> list[str]:
    return ["".join(seen.texts) for seen in provider.seen]


# what is missing


def test_a_missing_answer_is_zero_in_strict_and_graded_as_the_word_none_in_official(tmp_path: Path, serve: Serve):
    provider, folder = serve(answer=saying(FIVE)), outputs(tmp_path / "out", without=("toy_1_1.txt",))
    run = scored(tmp_path, provider, folder, official=True)
    verdict = next(one for one in run.verdicts if one.metric == "accuracy")
    assert (verdict.value, verdict.by, OFFICIAL.score(verdict)) == (0.0, "failure", 5)
    strict, official = run.table().run_rows
    assert (strict.cells["Avg"].value, official.cells["Avg"].value) == pytest.approx((0.35, 0.5))
    assert any("\nNone\n" in text for text in texts(provider)), "the word is graded"


def test_without_official_nobody_is_asked_and_the_official_row_has_no_number(tmp_path: Path, serve: Serve):
    provider, folder = serve(answer=saying(FIVE)), outputs(tmp_path / "out", without=("toy_1_1.txt",))
    run = scored(tmp_path, provider, folder)
    assert provider.count == 6, "two pictures with three questions each"
    table = run.table()
    strict, official = table.run_rows
    assert (strict.cells["Avg"].value, official.cells["Avg"].value) == (pytest.approx(0.35), None)
    assert "a run with --official asks the judge" in table.note


def test_a_missing_picture_and_what_refers_to_it_are_judged_without_it_in_official(tmp_path: Path, serve: Serve):
    provider, folder = serve(answer=saying(FIVE)), outputs(tmp_path / "out", without=("toy_2.png",))
    run = scored(tmp_path, provider, folder, official=True)
    found = {(one.turn, one.metric): one for one in run.verdicts}
    zero = [
        (0, "key_point"),
        (0, "visual_consistency"),
        (0, "image_quality"),
        (2, "key_point"),
        (2, "visual_consistency"),
    ]
    assert all(found[place].value == 0 and OFFICIAL.score(found[place]) == 5 for place in zero)
    assert found[2, "image_quality"].value == 0.5
    assert sorted(len(seen.pictures) for seen in provider.seen) == [0, 0, 1, 1, 1, 2, 2], (
        "1 + key points' pictures that are there"
    )


def test_the_zero_stands_if_the_judge_has_nothing_to_say_of_what_is_missing(tmp_path: Path, serve: Serve):
    folder = outputs(tmp_path / "out", without=("toy_1_1.txt",))
    answer = lambda seen: {"role": "assistant", "content": "no" if "None" in "".join(seen.texts) else FIVE}  # noqa: E731
    run = scored(tmp_path, serve(answer=answer), folder, official=True)
    strict, official = run.table().run_rows
    assert (strict.cells["Avg"].value, official.cells["Avg"].value) == (pytest.approx(0.35), None), (
        "its record is lost to the scripts"
    )


# what is sent


def test_official_prompts_are_sent_as_the_scripts_send_them(tmp_path: Path, serve: Serve, checkout: Path):
    provider, folder = serve(answer=saying(FIVE)), outputs(tmp_path / "out")
    scored(tmp_path, provider, folder, prompts=f"official:{checkout}")
    for seen in provider.seen:
        assert set(seen.body) == {"model", "messages", "stream", "max_tokens"} and seen.body["max_tokens"] == 1400
    assert "Grade {}. Right: Four. Said:  four\n" in texts(provider), "with the spaces around the answer"
    assert "Points of  are:\n1. House equals .\n2. Door equals .\n3. No new objects." in texts(provider)
    scored(
        tmp_path, provider, folder, prompts=f"official:{checkout}", judge_options={"max_tokens": 99, "temperature": 0.5}
    )
    assert provider.seen[-1].body["max_tokens"] == 99 and provider.seen[-1].body["temperature"] == 0.5
    scored(tmp_path, provider, folder)
    assert "response_format" in provider.seen[-1].body and "max_tokens" not in provider.seen[-1].body


def test_official_prompts_have_their_pictures_as_jpeg(tmp_path: Path, serve: Serve, checkout: Path):
    provider, folder = serve(answer=saying(FIVE)), outputs(tmp_path / "out")
    run = scored(tmp_path, provider, folder, prompts=f"official:{checkout}")
    own = {image.digest for turn in run.turns for image in turn.reply.images}
    sent = {picture.removeprefix("sha256:") for seen in provider.seen for picture in seen.pictures}
    assert len(sent) == 3 and not own & sent
    home = max(tmp_path.glob("home *"), key=lambda path: path.stat().st_mtime)
    assert all((home / "blobs" / one[:2] / one).read_bytes()[:2] == b"\xff\xd8" for one in sent)


# what is made of replies


@pytest.mark.parametrize(
    ("said", "metric", "score"),
    [
        ('{"score": 7}', "key_point", 7),
        ('{"score": 6.5, "reasoning": "x"}', "image_quality", 6.5),
        ('{"score": 7, "reasoning": "x"}', "accuracy", 7),
        ('{"score": 11, "reasoning": "x"}', "key_point", 11),
        ('```json\n{"score": 3, "reasoning": "x"}\n```', "accuracy", 3),
    ],
)
def test_scores_that_the_scripts_count_are_counted_in_official_alone(
    tmp_path: Path, serve: Serve, said: str, metric: str, score: float
):
    run = scored(tmp_path, serve(answer=saying(said)), outputs(tmp_path / "out"))
    found = [one for one in run.verdicts if one.metric == metric]
    assert found and all(one.value is None and OFFICIAL.score(one) == score for one in found)


@pytest.mark.parametrize(
    "said", ["", "five", '{"score": "5"}', '{"score": null}', '{"score": [5]}', '{"score": NaN}', '{"score": Infinity}', '{"score": 1e300}',
             '{"score": ' + "9" * 400 + "}", "[" * 100_000, 'Here: {"score": 5}']
)  # fmt: skip
def test_what_the_scripts_make_nothing_of_has_no_official_score(said: str):
    assert OFFICIAL.reading(Question(("key_point",), (), {}, TurnRef()), said) == {}


def test_the_first_reply_counts_in_official_the_second_in_strict(tmp_path: Path, serve: Serve):
    provider = serve(answer=lambda seen: saying('{"score": 7}' if len(seen.body["messages"]) == 1 else FIVE)(seen))
    run = scored(tmp_path, provider, outputs(tmp_path / "out"))
    assert {(one.score, OFFICIAL.score(one)) for one in run.verdicts} == {(5.0, 7)}


def test_a_record_without_one_of_its_verdicts_is_left_out_in_official():
    kept = [Verdict("a", 0, metric, 1.0, score=10.0) for metric in SHORT_NAMES]
    lost = [
        Verdict("b", 0, "key_point", 0.0, score=0.0),
        Verdict("b", 0, "visual_consistency", None, "the judge refused"),
    ]
    cells = build_metric_cells([*kept, *lost], official=True)
    assert (cells["KP"].value, cells["KP"].scored, cells["KP"].expected) == (1.0, 1, 2)
    assert build_metric_cells([*kept, *lost], official=False)["KP"].value == 0.5


# a second implementation


def summary(scores: list[tuple[str, str, float]], rounded: Callable[[float], float]) -> dict[tuple[str, str], float]:
    """The released summary as the protocol describes it: (domain, metric, score) -> cells."""
    where = {domain: name for name, domains in CLASSES.items() for domain in domains}
    heaps: dict[str, dict[str, list[float]]] = {}
    for domain, metric, score in scores:
        for group in (domain, where[domain], "overall"):
            heaps.setdefault(group, {}).setdefault(metric, []).append(score)
    cells: dict[tuple[str, str], float] = {}
    for group, found in heaps.items():
        means = {metric: rounded(sum(some) / len(some) / 10) for metric, some in found.items()}
        if {"key_point", "visual_consistency", "image_quality"} <= means.keys():
            weights = (0.4, 0.1, 0.2, 0.3) if "accuracy" in means else (0.5, 0.2, 0.3)
            average = sum(means[metric] * weight for metric, weight in zip(SHORT_NAMES, weights, strict=False))
        else:
            average = sum(means.values()) / len(means)
        cells.update({(group, SHORT_NAMES[metric]): value for metric, value in means.items()})
        cells[group, "Avg"] = rounded(average)
    return cells


DOMAINS = [domain for domains in CLASSES.values() for domain in domains]
SCORES = st.one_of(st.integers(0, 10), st.floats(0, 10).map(lambda x: round(x, 2)))
JUDGED = st.tuples(
    st.sampled_from(DOMAINS),
    st.sampled_from([*SHORT_NAMES]),
    SCORES,
    st.one_of(st.none(), st.sampled_from((0, 3, 7, 11, 6.5))),
)


@given(st.lists(JUDGED, min_size=1, max_size=60))
def test_both_arithmetics_agree_with_a_second_implementation(drawn_: list[tuple[str, str, float, float | None]]):
    """What strict scored, and what the scripts take from the same replies where that is another number."""
    verdicts, groups = [], {}
    for at, (domain, metric, score, other) in enumerate(drawn_):
        reading = None if other is None else OfficialReading(other)
        verdicts.append(Verdict(f"s{at}", 0, metric, score / 10, score=float(score), reading=reading))
        groups[f"s{at}"] = {"domain": domain, "class": next(name for name, some in CLASSES.items() if domain in some)}
    run = weft.benchmarks.RunResults("m", groups, verdicts)
    for official in (False, True):
        found = [(d, m, s if other is None or not official else other) for d, m, s, other in drawn_]
        due = summary(found, (lambda value: round(value, 3)) if official else float)
        for (group, column), value in due.items():
            mine = [one for one in verdicts if group in ("overall", *groups[one.sample].values())]
            cell = build_metric_cells(mine, official=official)[column]
            assert cell.value == (value if official else pytest.approx(value)), (group, column, official)
    # A strict row has a second one unless what the scripts round to is its rounding.
    due = summary([(d, m, s if other is None else other) for d, m, s, other in drawn_], lambda value: round(value, 3))
    last = next(iter(tables([run]))).run_rows[-1]
    tolerance = 0 if last.arithmetic == "official" else 0.0005 + 1e-9
    assert last.cells["Avg"].value == pytest.approx(due["overall", "Avg"], rel=0, abs=tolerance)


@pytest.mark.parametrize("said", ["7", '"good"', "null", "[]", '[{"score": 7}]', "true", "```json\n7\n```"])
def test_json_without_a_score_is_passed_over(said: str):
    reading = OFFICIAL.reading(Question(("key_point",), (), {}, TurnRef()), said)
    assert reading == {"key_point": OfficialReading()}


def test_true_counts_one():
    reading = OFFICIAL.reading(Question(("key_point",), (), {}, TurnRef()), '{"score": true, "reasoning": "x"}')
    assert reading == {"key_point": OfficialReading(1.0)}


def test_a_missing_output_whose_reply_has_no_score_costs_its_metric_alone(tmp_path: Path, serve: Serve):
    folder = outputs(tmp_path / "out", without=("toy_1_1.txt",))
    answer = lambda seen: saying('{"reasoning": "x"}' if "None" in "".join(seen.texts) else FIVE)(seen)  # noqa: E731
    run = scored(tmp_path, serve(answer=answer), folder, official=True)
    strict, official = run.table().run_rows
    assert (strict.cells["Avg"].value, official.cells["Avg"].value) == (0.35, 0.5)


def test_a_score_in_a_refusal_counts_in_official_alone(tmp_path: Path, serve: Serve):
    refuse = lambda seen: {"role": "assistant", "content": FIVE, "refusal": "no"}  # noqa: E731
    run = scored(tmp_path, serve(answer=refuse), outputs(tmp_path / "out"))
    assert {(one.value, OFFICIAL.score(one)) for one in run.verdicts} == {(None, 5)}


# files that are no images to weft


@pytest.mark.parametrize("form", ["BMP", "GIF", "cut"])
def test_an_image_of_another_form_is_judged_for_the_official_row_alone(
    tmp_path: Path, serve: Serve, checkout: Path, form: str
):
    provider, folder = serve(answer=saying(FIVE)), outputs(tmp_path / "out")
    (folder / "imgs" / "toy_2.png").write_bytes(drawn_as(form, "second"))
    run = scored(tmp_path, provider, folder, prompts=f"official:{checkout}", official=True)
    unscored = {(one.turn, one.metric) for one in run.verdicts if one.value is None}
    own = {(0, metric) for metric in ("key_point", "visual_consistency", "image_quality")}
    assert unscored == {*own, (2, "key_point"), (2, "visual_consistency")}, "the third turn's reference is that image"
    assert {OFFICIAL.score(one) for one in run.verdicts} == {5}
    assert sorted(len(seen.pictures) for seen in provider.seen) == [0, 1, 1, 2, 2, 3, 3]
    whole = outputs(tmp_path / "whole")
    again = serve(answer=saying(FIVE))
    scored(tmp_path, again, whole, prompts=f"official:{checkout}", official=True)
    assert {picture for seen in provider.seen for picture in seen.pictures} == {
        picture for seen in again.seen for picture in seen.pictures
    }


def test_a_requirement_that_ends_like_a_file_is_left_out_of_the_official_prompt(
    tmp_path: Path, serve: Serve, checkout: Path
):
    record = toy_records()[0]
    record["chats"][1]["key_point"] = {"GT #1": "The sky of <image> is that of A.PNG"}
    record["chats"][5]["key_point"]["GT #1"] = "see https://a.example/b.png<image>."
    write_weave(tmp_path / "data", [record])
    provider, folder = serve(answer=saying(FIVE)), outputs(tmp_path / "out")
    scored(tmp_path, provider, folder, prompts=f"official:{checkout}")
    assert "Points of  are:\n1. The sky of " in texts(provider)
    assert not any("A.PNG" in text for text in texts(provider))
    scored(tmp_path, provider, folder)
    assert any("A.PNG" in text for text in texts(provider)), "with prompts of our own nothing is lost"


# how it is told


def test_outputs_made_elsewhere_say_nothing_of_a_history(tmp_path: Path, serve: Serve):
    folder = outputs(tmp_path / "bagel")
    assert scored(tmp_path, serve(answer=saying(FIVE)), folder).name == "folder/bagel"
    assert (
        scored(tmp_path, serve(answer=saying(FIVE)), folder, official=True, turns="image").name
        == "folder/bagel [official, image turns]"
    )


def test_tables_by_domain_say_which_arithmetic_they_are(tmp_path: Path, serve: Serve):
    provider, folder = serve(answer=saying(FIVE)), outputs(tmp_path / "out", without=("toy_1_1.txt",))
    titles = [
        table.title
        for table in scored(tmp_path, provider, folder, official=True).tables()
        if "by domain" in table.title
    ]
    assert [title.rpartition(": ")[2] for title in titles] == ["by domain, strict", "by domain, official"]
    provider = serve(answer=saying(FIVE))
    titles = [
        table.title
        for table in scored(tmp_path, provider, outputs(tmp_path / "all")).tables()
        if "by domain" in table.title
    ]
    assert [title.rpartition(": ")[2] for title in titles] == ["by domain"]


def test_a_reply_without_a_score_is_passed_over_and_its_record_stays():
    """The scripts find nothing to add up there, and count the rest."""
    assert OFFICIAL.reading(Question(("key_point",), (), {}, TurnRef()), '{"reasoning": "x"}') == {
        "key_point": OfficialReading()
    }
    kept = [
        Verdict("a", 0, "key_point", 0.5, score=5.0),
        Verdict("a", 0, "image_quality", None, "no score", reading=OfficialReading()),
    ]
    assert build_metric_cells(kept, official=True)["KP"].value == 0.5


def test_a_metric_without_a_score_was_never_due_to_the_scripts():
    """All records with text turns are lost: what is left is weighed as pictures alone."""
    picture = [
        Verdict("a", 0, metric, 0.5, score=5.0) for metric in ("key_point", "visual_consistency", "image_quality")
    ]
    lost = Verdict("b", 0, "accuracy", None, "the judge refused")
    assert build_metric_cells([*picture, lost], official=True)["Avg"].value == 0.5
    assert build_metric_cells([*picture, lost], official=False)["Avg"].value is None


def test_repeats_of_a_question_that_the_scripts_ask_otherwise_count_theirs():
    ours = [Verdict("a", 0, "key_point", 0.8, score=8.0, variant=f"repeat {n}") for n in (1, 2)]
    theirs = [Verdict("a", 0, "key_point", 0.2, score=2.0, variant=f"official, repeat {n}") for n in (1, 2)]
    (settled,) = Weave().merge_variants([*ours, *theirs])
    assert (strict_points(settled), OFFICIAL.score(settled)) == (8.0, 2.0)


def test_an_empty_answer_that_is_there_is_graded_as_it_is(tmp_path: Path, serve: Serve, checkout: Path):
    provider, folder = serve(answer=saying(FIVE)), outputs(tmp_path / "out")
    (folder / "imgs" / "toy_1_1.txt").write_text("")
    scored(tmp_path, provider, folder, prompts=f"official:{checkout}", official=True)
    assert "Grade {}. Right: Four. Said: " in texts(provider)


def test_a_picture_that_no_jpeg_can_hold_costs_its_question_alone(tmp_path: Path, serve: Serve, checkout: Path):
    provider, folder = serve(answer=saying(FIVE)), outputs(tmp_path / "out")
    Pil.new("RGB", (66_000, 2)).save(folder / "imgs" / "toy_3.png")
    run = scored(tmp_path, provider, folder, prompts=f"official:{checkout}")
    reasons = {one.reason for one in run.verdicts if one.value is None}
    assert len(reasons) == 1 and "cannot be encoded as JPEG" in reasons.pop()
