"""Who rates what: fair, spread, and the same on every machine."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as some

from weft.judge_eval.annotation import collect_scores
from weft.judge_eval.annotation.assignment import assign_items, draw_items, mix_in_checks
from weft.store.annotations import Annotation
from weft.types import Verdict

names = some.lists(some.text("abcdef", min_size=1, max_size=4), min_size=1, max_size=7, unique=True)
questions = some.lists(some.integers(0, 10_000).map(str), max_size=60, unique=True)


@given(questions, names, some.integers(1, 7), some.integers(0, 5))
def test_every_question_has_its_raters_and_nobody_has_more_than_one_more(
    items: list[str], raters: list[str], each: int, seed: int
):
    each = min(each, len(raters))
    made = assign_items(items, raters, each, seed)
    assert list(made) == raters and made == assign_items(items, raters, each, seed)
    count = Counter(item for mine in made.values() for item in mine)
    assert count == Counter(dict.fromkeys(items, each)), "each question goes to so many"
    assert all(len(set(mine)) == len(mine) for mine in made.values()), "to nobody twice"
    loads = [len(mine) for mine in made.values()]
    assert max(loads) - min(loads) <= 1


def test_those_who_rate_together_change():
    made = assign_items([str(number) for number in range(60)], ["a", "b", "c", "d"], 2, 0)
    pairs = Counter(frozenset(name for name in made if item in made[name]) for item in map(str, range(60)))
    assert len(pairs) == 6 and max(pairs.values()) - min(pairs.values()) <= 2
    assert made["a"] != [item for item in made["b"] if item in made["a"]], "everybody has an order of their own"


@given(
    some.dictionaries(some.integers(0, 999).map(str), some.sampled_from("abcdefgh"), max_size=80), some.integers(1, 40)
)
def test_a_sample_is_of_as_many_dialogues_as_can_be(items: dict[str, str], count: int):
    made = draw_items(items, count, 3)
    assert made == draw_items(dict(reversed(items.items())), count, 3), "whatever the order of the data"
    assert len(made) == len(set(made)) == min(count, len(items)) and made == draw_items(items, len(items), 3)[:count]
    held = Counter(items[item] for item in made)
    left = Counter(items[item] for item in items if item not in made)
    assert all(held[name] >= max(held.values()) - 1 for name in left), (
        "no dialogue has two more while another has some left"
    )


@given(questions, some.lists(some.integers(20_000, 30_000).map(str), max_size=8, unique=True))
def test_known_answers_stand_among_the_others_and_not_first(items: list[str], known: list[str]):
    made = mix_in_checks(items, known, "ann", 0)
    assert sorted(made) == sorted([*items, *known]) and (not items or made[0] in items)


def rating(rater: str, value: float | None, at: float, **more: object) -> Annotation:
    known = bool(more.pop("attention", False))
    said = Verdict("s", 0, "m", value, by="person", **more)  # type: ignore[arg-type]
    return Annotation("run", str(more.get("variant", "study")), f"{at}", rater, (said,), {}, at, 1.0, known)


def test_people_by_sample_turn_and_metric():
    some_ratings = [
        rating("ann", 0.5, 2.0),
        rating("ann", 0.1, 1.0),
        rating("bob", 0.2, 1.0, variant="order AB"),
        rating("bob", 0.6, 2.0, variant="order BA"),
        rating("cem", 1.0, 1.0, attention=True),
        rating("dan", None, 1.0),
    ]
    found = collect_scores(some_ratings)
    assert list(found) == [("s", 0, "m")] and list(found["s", 0, "m"]) == ["ann", "bob"]
    assert found["s", 0, "m"]["ann"] == 0.5, "the later of two counts"
    assert abs(found["s", 0, "m"]["bob"] - 0.4) < 1e-9, "two questions about one thing are their mean"
