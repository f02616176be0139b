import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.calls.structured_output import UnusableReply, read_reply
from weft.errors import WeftError
from weft.judges.vlm import build_request
from weft.types import Question, TurnRef

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
    with pytest.raises(UnusableReply, match=why):
        read_reply(text, SCHEMA)


def test_only_the_scores_of_the_scale_exist():
    assert read_reply('{"score": 5, "reasoning": ""}', WHOLE)["score"] == 5
    with pytest.raises(UnusableReply, match=r"\$\.score: 7 is not one of 0, 5, 10"):
        read_reply('{"score": 7, "reasoning": ""}', WHOLE)
    with pytest.raises(UnusableReply, match=r"\$\.score: Expected `int`, got `float`"):
        read_reply('{"score": 7.5, "reasoning": ""}', WHOLE)


@given(st.text(), st.floats(0, 10), st.text(max_size=60), st.text(max_size=60))
def test_any_reasoning_survives_the_way_through(reason: str, score: float, before: str, after: str):
    strip = str.maketrans("", "", '{}"<\\')
    said = (
        before.translate(strip)
        + json.dumps({"reasoning": reason.replace("<", "("), "score": score})
        + after.translate(strip)
    )
    assert read_reply(said, SCHEMA) == {"reasoning": reason.replace("<", "("), "score": score}


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=8),
        lambda s: st.lists(s) | st.dictionaries(st.text(max_size=8), s),
    )
)
def test_no_reply_whatever_gives_a_number_outside_the_scale(value: Any):
    try:
        found = read_reply(json.dumps({"reasoning": "", "score": value}), SCHEMA)
    except UnusableReply:
        return
    assert 0 <= found["score"] <= 10


def test_an_error_deep_inside_a_reply_says_where():
    score = {"type": "integer", "minimum": 0, "maximum": 10}
    entry = {"type": "object", "properties": {"Score": score}, "required": ["Score"]}
    nested = {"type": "object", "properties": {"scores": {"type": "object", "properties": {"c1": entry, "c2": entry}}}}
    assert (
        read_reply('{"scores": {"c1": {"Score": "7"}, "c2": {"Score": 3}, "other": 1}}', nested)["scores"]["c1"][
            "Score"
        ]
        == 7
    )
    with pytest.raises(UnusableReply, match=r"\$\.scores\.c2\.Score: Expected `int` <= 10"):
        read_reply('{"scores": {"c1": {"Score": 7}, "c2": {"Score": 12}}}', nested)
    points = {"type": "object", "properties": {"points": {"type": "array", "items": entry}}}
    with pytest.raises(UnusableReply, match=r"\$\.points\[1\]: Object missing required field `Score`"):
        read_reply('{"points": [{"Score": 7}, {}]}', points)


def scored(**score: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"score": score}, "required": ["score"]}


@pytest.mark.parametrize(
    ("score", "said", "value"),
    [
        ({"type": "number", "minimum": 0, "maximum": 10}, '" 8 "', 8),
        ({"type": "number", "enum": [1, 2, 3, 4, 5]}, "3", 3),
        ({"type": "number", "enum": [1, 2, 3, 4, 5]}, "3.5", None),
        ({"type": "integer", "enum": [1, 3, 5]}, "3", 3),
        ({"type": "integer", "enum": [1, 3, 5]}, "2", None),
        ({"type": "number", "enum": [0, 0.5, 1]}, "0.5", 0.5),
        ({"type": "number", "enum": [0, 0.5, 1]}, "0.25", None),
        ({"type": "integer", "enum": [5]}, "5", 5),
        ({"type": "string", "enum": ["yes", "no"]}, '"no"', "no"),
        ({"type": "string", "enum": ["yes", "no"]}, '"maybe"', None),
        ({"type": "boolean"}, "true", True),
    ],
)
def test_what_is_named_one_by_one_is_all_there_is(score: dict[str, Any], said: str, value: Any):
    text = f'{{"score": {said}}}'
    if value is not None:
        assert read_reply(text, scored(**score)) == {"score": value}
        return
    with pytest.raises(UnusableReply, match=r"\$\.score: "):
        read_reply(text, scored(**score))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"score": {"anyOf": []}}},
        {"type": "object", "properties": {"score": {"type": "integer", "enum": []}}},
        {"type": "object", "properties": {}, "required": ["score"]},
        {"type": "object", "properties": {'a"b': {"type": "string"}}},
    ],
)
def test_a_schema_that_cannot_be_checked_is_an_error_before_anyone_is_asked(schema: dict[str, Any]):
    question = Question(("x",), (), schema, TurnRef("s", 0))
    with pytest.raises(WeftError, match="the question about x, sample s: its schema: ValueError"):
        build_request(question)


def test_a_reply_nested_without_end_is_unusable():
    with pytest.raises(UnusableReply):
        read_reply('{"a":' * 5000 + "1" + "}" * 5000, SCHEMA)
