import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.judges.parse import Unusable, read_reply

SCHEMA = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "score": {"type": "number", "minimum": 0, "maximum": 10}},
    "required": ["reasoning", "score"],
}
WHOLE = {**SCHEMA, "properties": {**SCHEMA["properties"], "score": {"type": "integer", "enum": [0, 5, 10]}}}  # type: ignore[dict-item]
GOOD = '{"reasoning": "fine {braces} and \\"quotes\\"", "score": 7.5}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure! Here is my verdict:\n{GOOD}\nI hope this helps {{sic}}.",
        f'<think>maybe {{"score": 1, "reasoning": "draft"}}</think>{GOOD}',
        f'the template opened the tag already, {{"score": 2, "reasoning": "x"}}</think>\n{GOOD}',
        f'{{"score": 3, "reasoning": "first thought"}} No, wait: {GOOD}',
        GOOD.replace("7.5", '"7.5"'),
        f"{{ broken {GOOD}",
    ],
)
def test_the_verdict_is_found_in_what_judges_really_send(text: str):
    assert read_reply(text, SCHEMA)["score"] == 7.5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("<think>hm</think>", "empty"),
        ('<think>maybe {"reasoning": "draft", "score": 0} or rather', "empty"),
        ('{"reasoning": "", "score": 1' + "0" * 400 + "}", r"\$\.score: Number out of range"),
        ("I give it a ten out of ten", "no JSON object"),
        ('{"score": 11, "reasoning": ""}', r"\$\.score: Expected `float` <= 10"),
        ('{"score": -1, "reasoning": ""}', r"\$\.score: Expected `float` >= 0"),
        ('{"score": "high", "reasoning": ""}', r"\$\.score: Expected `float`"),
        ('{"score": true, "reasoning": ""}', r"\$\.score: Expected `float`"),
        ('{"score": null, "reasoning": ""}', r"\$\.score: Expected `float`"),
        ('{"score": NaN, "reasoning": ""}', "no JSON object"),
        ('{"score": "NaN", "reasoning": ""}', r"\$\.score: Expected `float`"),
        ('{"score": 8}', r"\$: Object missing required field `reasoning`"),
        ('{"score": 8, "reasoning": "cut he', "no JSON object"),
        ("[8]", "no JSON object"),
        ("{" * 40_000, "no JSON object"),
    ],
)
def test_what_does_not_fit_is_unusable_and_says_why(text: str, why: str):
    with pytest.raises(Unusable, match=why):
        read_reply(text, SCHEMA)


def test_only_the_scores_of_the_scale_exist():
    assert read_reply('{"score": 5, "reasoning": ""}', WHOLE)["score"] == 5
    with pytest.raises(Unusable, match=r"\$\.score: Expected `int` that's a multiple of 5"):
        read_reply('{"score": 7, "reasoning": ""}', WHOLE)
    with pytest.raises(Unusable, match=r"\$\.score: Expected `int`, got `float`"):
        read_reply('{"score": 7.5, "reasoning": ""}', WHOLE)


@given(st.text(), st.floats(0, 10), st.text(max_size=60), st.text(max_size=60))
def test_any_reasoning_survives_the_way_through(reason: str, score: float, before: str, after: str):
    strip = str.maketrans("", "", '{}"<\\')
    said = before.translate(strip) + json.dumps({"reasoning": reason.replace("<", "("), "score": score}) + after.translate(strip)
    assert read_reply(said, SCHEMA) == {"reasoning": reason.replace("<", "("), "score": score}


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=8), lambda s: st.lists(s) | st.dictionaries(st.text(max_size=8), s)
    )
)
def test_no_reply_whatever_gives_a_number_outside_the_scale(value: Any):
    try:
        found = read_reply(json.dumps({"reasoning": "", "score": value}), SCHEMA)
    except Unusable:
        return
    assert 0 <= found["score"] <= 10


def test_an_error_deep_inside_a_reply_says_where():
    score = {"type": "integer", "minimum": 0, "maximum": 10}
    entry = {"type": "object", "properties": {"Score": score}, "required": ["Score"]}
    nested = {"type": "object", "properties": {"scores": {"type": "object", "properties": {"c1": entry, "c2": entry}}}}
    assert read_reply('{"scores": {"c1": {"Score": "7"}, "c2": {"Score": 3}, "other": 1}}', nested)["scores"]["c1"]["Score"] == 7
    with pytest.raises(Unusable, match=r"\$\.scores\.c2\.Score: Expected `int` <= 10"):
        read_reply('{"scores": {"c1": {"Score": 7}, "c2": {"Score": 12}}}', nested)
    points = {"type": "object", "properties": {"points": {"type": "array", "items": entry}}}
    with pytest.raises(Unusable, match=r"\$\.points\[1\]: Object missing required field `Score`"):
        read_reply('{"points": [{"Score": 7}, {}]}', points)
