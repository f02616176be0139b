"""What runs are called."""

from typing import Any

import pytest

from manifests import manifest
from weft.results.titles import TitleInput, distinct_titles, format_title, shared_settings


def test_a_title_is_the_model_and_what_was_chosen_for_it():
    chosen = {"version": "step-2", "parameters": {"temperature": 0.5, "seed": 3}}
    one = manifest(
        "bagel",
        chosen,
        strategy="best-of:3",
        where={"domain": "edit"},
        limit=5,
        sample={"count": 9, "seed": 1},
        judge_repeats=2,
    )
    assert format_title(one) == (
        "bagel [partial, best-of:3, version step-2, temperature 0.5, seed 3, domain edit, first 5, 9 at random (seed "
        "1), 2 judgements each]"
    )
    assert (
        format_title(one, names={"model": "ours"}).startswith("ours [") and format_title(one, names={"tag": "t"}) == "t"
    )
    assert (
        format_title(manifest(), "stopped") == "m [partial, unfinished]"
        and format_title(manifest(), "stopped", {"tag": "t"}) == "t [unfinished]"
    )


def test_a_seed_that_all_models_with_one_share_is_in_no_title():
    seeded = [TitleInput(manifest(name, {"seed": 0})) for name in ("m-0.1", "m-0.2")]
    other = TitleInput(manifest("copy"))
    assert distinct_titles([*seeded, other]) == ["m-0.1", "m-0.2", "copy"]
    again = TitleInput(manifest("m-0.1", {"seed": 1}))
    assert distinct_titles([*seeded, again, other]) == ["m-0.1 [seed 0]", "m-0.2 [seed 0]", "m-0.1 [seed 1]", "copy"]
    without = TitleInput(manifest("m-0.1"))
    assert distinct_titles([*seeded, without]) == ["m-0.1 [seed 0]", "m-0.2 [seed 0]", "m-0.1"]


def test_a_temperature_of_zero_is_one():
    at_zero = ({"temperature": 0}, {"temperature": 0.0, "parameters": {"temperature": 1}})
    for chosen in (*at_zero, {"parameters": {"temperature": 0}}):
        assert format_title(manifest("m", chosen)) == "m [partial, temperature 0]"
    assert format_title(manifest("m", {"temperature": True})) == "m [partial]"


def test_of_several_runs_only_what_tells_them_apart_is_said():
    runs = [TitleInput(manifest("m", {"seed": seed, "temperature": 1.0})) for seed in (0, 1)]
    assert distinct_titles(runs) == ["m [seed 0]", "m [seed 1]"] and shared_settings(runs) == [
        "partial",
        "temperature 1",
        "judged by j",
    ]
    judges = [TitleInput(manifest(judge={"name": name})) for name in ("a", "b")]
    assert distinct_titles(judges) == ["m [judged by a]", "m [judged by b]"]
    assert distinct_titles([TitleInput(manifest("x")), TitleInput(manifest("y"))]) == ["x", "y"]
    assert distinct_titles([TitleInput(manifest(), {"model": "ours"}), TitleInput(manifest("y"))]) == ["ours", "y"]


def test_what_nothing_in_words_tells_apart_is_told_by_what_differs_and_never_by_a_bare_digest():
    places = [TitleInput(manifest("m", {"url": f"http://127.0.0.1:800{at}/v1"})) for at in (0, 1)]
    assert distinct_titles(places) == ["m [url http://127.0.0.1:8000/v1]", "m [url http://127.0.0.1:8001/v1]"]
    sources = [TitleInput(manifest("m", {"version": f"source:{mark * 16}"})) for mark in "ab"]
    assert distinct_titles(sources) == ["m [source aaaaaaaa]", "m [source bbbbbbbb]"]
    data = [TitleInput(manifest(dataset={"name": "d", "digest": mark * 64})) for mark in "ab"]
    assert distinct_titles(data) == ["m [data aaaaaaaa]", "m [data bbbbbbbb]"]
    assert distinct_titles([TitleInput(manifest(), {"tag": "same"}), TitleInput(manifest("n"), {"tag": "same"})]) != [
        "same",
        "same",
    ]
    assert len(set(distinct_titles([TitleInput(manifest())] * 3))) == 3


@pytest.mark.parametrize(
    "one, other, titles",
    [
        ({"images": "interleaved"}, {"images": "strip"}, ["m", "m [images strip]"]),
        ({"images": "interleaved"}, {"images": "list"}, ["m [images interleaved]", "m [images list]"]),
        ({"max_side": None}, {"max_side": 512}, ["m [max_side not set]", "m [max_side 512]"]),
        ({}, {"most": 4}, ["m [max_images none]", "m [max_images 4]"]),
    ],
)
def test_titles_tell_runs_apart_by_how_the_model_is_shown_images(one: Any, other: Any, titles: list[str]):
    runs = [TitleInput(manifest("m", {"takes": takes})) for takes in (one, other)]
    assert distinct_titles(runs) == titles


def test_a_strip_is_in_the_title_of_a_single_run_and_of_a_part():
    strip = {"takes": {"images": "strip"}}
    assert format_title(manifest("m", strip)) == "m [partial, images strip]"
    painter = manifest("m", {"parts": {"painter": {"name": "p", **strip}}})
    assert format_title(painter) == "m [partial, painter images strip]"


def test_what_is_the_same_but_for_the_seed_is_found_wherever_the_seed_stands():
    parts = {"parts": {"painter": {"name": "p", "seed": 1}}}
    places: list[dict[str, Any]] = [
        {"seed": 1},
        {"parameters": {"seed": 1, "steps": 4}},
        {"options": {"seed": 1}},
        parts,
    ]
    for changed in places:
        other = manifest("m", changed).without_seed()
        assert "seed" not in str(other.model) and other.strategy == "none"
    assert manifest("m", {"parameters": {"seed": 1, "steps": 4}}).without_seed().model.parameters == {"steps": 4}
