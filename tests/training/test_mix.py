"""A mix decides the rows of every step, and keeps its shares."""

import pytest

from weft.errors import UserError
from weft.training.mix import Mix, Source, parse_mix

MIX = Mix((Source("a", 3), Source("b", 5), Source("c", 0.08)), seed=1)


def test_every_step_can_be_drawn_by_itself():
    whole = [MIX.draw(step, 64, (100, 200, 300)) for step in range(5)]
    again = MIX.draw(3, 64, (100, 200, 300))
    assert all((one == other).all() for one, other in zip(whole[3], again, strict=True))
    assert [len(rows) for rows in whole[3]] != [] and sum(len(rows) for rows in whole[3]) == 64


def test_over_many_steps_the_rows_of_a_source_are_its_share():
    counts = [sum(len(MIX.draw(step, 10, (9, 9, 9))[source]) for step in range(300)) for source in range(3)]
    assert sum(counts) == 3000
    for count, share in zip(counts, MIX.shares(), strict=True):
        assert abs(count - 3000 * share) <= 5


def test_another_seed_draws_other_rows():
    other = Mix(MIX.sources, seed=2)
    assert not (other.draw(0, 64, (1000,) * 3)[0] == MIX.draw(0, 64, (1000,) * 3)[0]).all()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("c=1", "no source 'c'"),
        ("a=1,a=2", "named twice"),
        ("a=-1", "no weight"),
        ("a=x", "no weight"),
        ("a=0", "above 0"),
    ],
)
def test_a_mix_that_cannot_be_is_one_clear_line(text: str, why: str):
    with pytest.raises(UserError, match=why):
        parse_mix(text, ("a", "b"))


def test_a_mix_is_read_with_its_views():
    mix = parse_mix("a=.25, b", ("a", "b"), seed=4, views={"a": "dialogue"})
    assert mix == Mix((Source("a", 0.25, "dialogue"), Source("b", 1.0)), 4)
