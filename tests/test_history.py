"""What a model sees, mode by mode: exactly which pictures and words, and none from its future."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.benchmarks.weave import Weave, data, history
from weft.benchmarks.weave.history import renumber
from weft.benchmarks.weave.protocol import WeaveOptions
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Image, Reply, Sample, Text, Turn, find_mentions

OWN = "own"


def shown(
    sample: Sample, turn: int, view: WeaveOptions, replies: dict[int, Reply] | None = None
) -> list[tuple[str, list[str]]]:
    """Messages with pictures as `<k>` (the dataset's k-th), `<own t>` (the model's own of turn t), `+n` for a label."""
    own = dialogue(sample) if replies is None else replies
    names = {image.digest: f"{k + 1}" for k, image in enumerate(sample.images)}
    names.update({image.digest: f"own {number}" for number, reply in own.items() for image in reply.images})

    def say(part: Text | Image) -> str:
        if isinstance(part, Text):
            return part.text
        return f"<{names[part.digest]}>" + (f"+{part.label}" if part.label is not None else "")

    messages = Weave().build_messages(sample, sample.turns[turn], {t: r for t, r in own.items() if t < turn}, view)
    return [(message.role, [say(part) for part in message.parts]) for message in messages]


def dialogue(sample: Sample) -> dict[int, Reply]:
    """The model answered every turn with something of its own."""
    made: dict[int, Reply] = {}
    for turn in sample.turns:
        own = Image(f"own-{sample.id}-{turn.number}", "image/png", 8, 8, 99)
        made[turn.number] = Reply("answered", (Text(f"said {turn.number}"),) if turn.modality == "text" else (own,))
    return made


@pytest.fixture
def samples(toy: Path, blobs: Blobs) -> dict[str, Sample]:
    return {sample.id: sample for sample in data.load(toy, blobs).load_all().samples}


def test_none_shows_the_datasets_pictures_and_only_those_mentioned(samples: dict[str, Sample]):
    view = WeaveOptions("none")
    assert shown(samples["7"], 0, view) == [("user", ["<1>", "Paint the door of image green."])]
    assert shown(samples["7"], 2, view) == [
        ("user", ["<1>+1", "<2>+2", "Use Image #2 but restore the door of Image #1."])
    ]
    assert shown(samples["7"], 1, view) == [("user", ["How many windows does ", "<2>", " have?"])]
    assert shown(samples["12"], 0, view) == [("user", ["Draw a chess board."])]


def test_partial_shows_the_models_own_pictures_where_it_made_them(samples: dict[str, Sample]):
    view = WeaveOptions("partial")
    assert shown(samples["7"], 2, view) == [
        ("user", ["<1>+1", "<own 0>+2", "Use Image #2 but restore the door of Image #1."])
    ]
    assert shown(samples["7"], 1, view) == [("user", ["How many windows does ", "<own 0>", " have?"])]


def test_labels_agree_with_the_renumbered_text_when_mentions_come_out_of_order(samples: dict[str, Sample]):
    assert shown(samples["9"], 0, WeaveOptions("partial")) == [
        ("user", ["<1>+1", "<3>+2", "Put the hat of Image #2 on the cat of Image #1."])
    ]
    expected = ["<1>+1", "<2>+2", "<own 0>+3", "Place the cat of Image #3 in Image #2, as big as in Image #1."]
    assert shown(samples["9"], 1, WeaveOptions("partial")) == [("user", expected)]


def test_full_gives_an_image_turn_every_picture_so_far_under_its_true_number(samples: dict[str, Sample]):
    view = WeaveOptions("full")
    assert shown(samples["9"], 0, view) == [
        ("user", ["Image #1:", "<1>+1", "Image #3:", "<3>+3", "Put the hat of Image #3 on the cat of Image #1."])
    ]
    parts = ["Image #1:", "<1>+1", "Image #2:", "<2>+2", "Image #3:", "<3>+3", "Image #5:", "<own 0>+5"]
    assert shown(samples["9"], 1, view) == [
        ("user", [*parts, "Place the cat of Image #5 in Image #2, as big as in Image #1."])
    ]


def test_full_gives_a_question_the_whole_dialogue_with_pictures_at_the_front(samples: dict[str, Sample]):
    assert shown(samples["12"], 2, WeaveOptions("full", past="reference")) == [
        ("user", ["Image #1:", "<1>+1", "Image #2:", "<2>+2", "Draw a chess board."]),
        ("assistant", ["Image #1"]),
        ("user", ["Move a pawn in Image #1."]),
        ("assistant", ["Image #2"]),
        ("user", ["Which of Image #2 and Image #1 came first?"]),
    ]


def test_full_at_first_mention_shows_every_picture_once_over_the_whole_dialogue(samples: dict[str, Sample]):
    assert shown(samples["12"], 2, WeaveOptions("full", "inline")) == [
        ("user", ["Draw a chess board."]),
        ("assistant", ["Image #1", "<own 0>+1"]),
        ("user", ["Move a pawn in Image #1."]),
        ("assistant", ["Image #2", "<own 1>+2"]),
        ("user", ["Which of Image #2 and Image #1 came first?"]),
    ]
    assert shown(samples["15"], 1, WeaveOptions("full", "inline")) == [
        ("user", ["What does Image #1", "<1>+1", " show?"]),
        ("assistant", ["said 0"]),
        ("user", ["And Image #2", "<2>+2", "?"]),
    ]


def test_dialogue_interleaves_everything_in_true_order(samples: dict[str, Sample]):
    assert shown(samples["7"], 2, WeaveOptions("dialogue", "inline")) == [
        ("user", ["Paint the door of Image #1", "<1>+1", " green."]),
        ("assistant", ["Image #2:", "<own 0>+2"]),
        ("user", ["How many windows does Image #2 have?"]),
        ("assistant", ["said 1"]),
        ("user", ["Use Image #2 but restore the door of Image #1."]),
    ]
    assert shown(samples["7"], 0, WeaveOptions("dialogue", "all-first"))[0] == (
        "user",
        ["Image #1:", "<1>+1", "Paint the door of Image #1 green."],
    )


def test_a_true_past_fills_in_the_references(samples: dict[str, Sample]):
    assert shown(samples["7"], 2, WeaveOptions("dialogue", "inline", past="reference"))[1:4] == [
        ("assistant", ["Image #2:", "<2>+2"]),
        ("user", ["How many windows does Image #2 have?"]),
        ("assistant", ["Four."]),
    ]


def test_turns_that_are_not_asked_are_filled_in_from_the_dataset(samples: dict[str, Sample]):
    view = WeaveOptions("dialogue", "inline", turns="image")
    assert ("assistant", ["Four."]) in shown(samples["7"], 2, view)


def test_nothing_is_put_in_the_mouth_of_a_model_that_refused(samples: dict[str, Sample]):
    refused = {0: Reply("refused", reason="no"), 1: Reply("answered", (Text("said 1"),))}
    assert shown(samples["7"], 2, WeaveOptions("partial"), refused) == [
        ("user", ["<1>+1", "Use Image #2 but restore the door of Image #1."])
    ]
    messages = shown(samples["7"], 2, WeaveOptions("dialogue", "inline"), refused)
    assert messages == [
        ("user", ["Paint the door of Image #1", "<1>+1", " green."]),
        ("user", ["How many windows does Image #2 have?"]),
        ("assistant", ["said 1"]),
        ("user", ["Use Image #2 but restore the door of Image #1."]),
    ]


def test_needs_names_the_turns_whose_replies_are_shown(samples: dict[str, Sample]):
    turns = samples["7"].turns
    assert history.depends_on(samples["7"], turns[2], WeaveOptions("none")) == set()
    assert history.depends_on(samples["7"], turns[2], WeaveOptions("partial")) == {0}
    assert history.depends_on(samples["7"], turns[2], WeaveOptions("full")) == {0}
    assert history.depends_on(samples["7"], turns[2], WeaveOptions("dialogue")) == {0, 1}
    assert history.depends_on(samples["7"], turns[2], WeaveOptions("dialogue", past="reference")) == set()


def test_official_keeps_what_the_released_scripts_send(samples: dict[str, Sample]):
    official = {mode: WeaveOptions(mode, official=True) for mode in ("none", "partial", "full")}  # type: ignore[arg-type]
    # mention order with repeats, text renumbered ascending: the labels are swapped
    assert shown(samples["9"], 0, official["partial"]) == [
        ("user", ["<3>", "<1>", "Put the hat of Image #2 on the cat of Image #1."])
    ]
    # full: the record's last picture first (a leak), then 1..max, own pictures where there are any
    expected = ["<5>", "<1>", "<2>", "<3>", "Put the hat of Image #3 on the cat of Image #1."]
    assert shown(samples["9"], 0, official["full"]) == [("user", expected)]
    assert shown(samples["9"], 1, official["full"])[0][1][:6] == ["<own 0>", "<1>", "<2>", "<3>", "<4>", "<own 0>"]
    # the loop for image and text turns shows a question what it mentions, with the text renumbered
    assert shown(samples["7"], 1, official["none"]) == [("user", ["<2>", "How many windows does image have?"])]
    assert shown(samples["7"], 1, official["partial"]) == [("user", ["<own 0>", "How many windows does image have?"])]
    assert shown(samples["7"], 1, official["full"]) == [
        ("user", ["<3>", "<1>", "<own 0>", "How many windows does Image #2 have?"])
    ]
    assert Weave().depends_on(samples["7"], samples["7"].turns[1], official["partial"]) == {0}
    assert Weave().depends_on(samples["7"], samples["7"].turns[1], official["none"]) == set()
    # the chat loop: a question without history gets no picture at all
    chat = {mode: WeaveOptions(mode, turns="text", official=True, loop="gpt") for mode in ("none", "partial", "full")}  # type: ignore[arg-type]
    for mode in ("none", "partial"):
        assert shown(samples["7"], 1, chat[mode]) == [("user", ["How many windows does Image #2 have?"])]
    assert Weave().depends_on(samples["7"], samples["7"].turns[1], chat["full"]) == set()
    first = WeaveOptions("full", "inline", turns="text", official=True, loop="gpt")
    assert shown(samples["12"], 2, first)[-1] == ("user", ["Which of Image #2", "<2>", " and Image #1 came first?"])
    assert shown(samples["15"], 1, first) == [
        ("user", ["What does Image #1", "<1>", " show?"]),
        ("user", ["And Image #2", "<2>", "?"]),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no mention", "no mention"),
        ("Draw Image #4 again", "Draw image again"),
        ("Image #5, Image #3, and Image #1", "Image #3, Image #2, and Image #1"),
        ("Image #2 and Image #2", "Image #1 and Image #1"),
    ],
)
def test_renumbering_follows_the_paper(text: str, expected: str):
    assert renumber(text, sorted(set(find_mentions(text)))) == expected


VIEWS = [
    WeaveOptions(mode, placement, past)  # type: ignore[arg-type]
    for mode in ("none", "partial", "full", "dialogue")
    for placement in ("all-first", "inline")
    for past in ("own", "reference")
]


def check_no_future(sample: Sample, view: WeaveOptions) -> None:
    replies = dialogue(sample)
    for turn in sample.turns:
        outputs = {
            sample.images[t.image_number - 1].digest for t in sample.turns[turn.number :] if t.image_number is not None
        }
        later = {f"own-{sample.id}-{t.number}" for t in sample.turns[turn.number :]}
        unseen = {
            sample.images[k - 1].digest
            for k in range(1, len(sample.images) + 1)
            if all(k not in find_mentions(t.prompt_text) for t in sample.turns[: turn.number + 1])
            and all(t.image_number != k for t in sample.turns)
        }
        messages = Weave().build_messages(sample, turn, {t: r for t, r in replies.items() if t < turn.number}, view)
        pictures = [part for message in messages for part in message.parts if isinstance(part, Image)]
        assert not {image.digest for image in pictures} & (outputs | later | unseen)
        said = {part.text for message in messages for part in message.parts if isinstance(part, Text)}
        for later_turn in sample.turns[turn.number :]:
            future = {part.text for part in later_turn.reference if isinstance(part, Text)}
            future |= {later_turn.prompt_text} if later_turn is not turn else set()
            past = {t.prompt_text for t in sample.turns[: turn.number + 1]} | {
                p.text for t in sample.turns[: turn.number] for p in t.reference if isinstance(p, Text)
            }
            assert not said & (future - past)


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_no_future_reaches_a_model_in_the_real_dialogues(real: Path, blobs: Blobs, view: WeaveOptions):
    dataset = data.load(real, blobs).load_all()
    assert len(dataset.samples) == 10
    for sample in dataset.samples:
        check_no_future(sample, view)


@st.composite
def any_sample(draw: Any) -> Sample:
    """Any dialogue: outputs in any order, texts that mention anything, the future included."""
    count = draw(st.integers(1, 6))
    pictures = tuple(Image(f"p{k}", "image/png", 8, 8, 9) for k in range(count))
    made = draw(st.permutations(range(1, count + 1)))
    turns: list[Turn] = []
    for number in range(draw(st.integers(1, 5))):
        asked = (
            " ".join(f"w{number} Image #{k}" for k in draw(st.lists(st.integers(1, count), max_size=4)))
            or f"ask {number}"
        )
        if made and draw(st.booleans()):
            makes = made.pop()
            turns.append(Turn(number, (Text(asked),), "image", (pictures[makes - 1],), makes))
        else:
            turns.append(Turn(number, (Text(asked),), "text", (Text(f"truth of {number}"),)))
    return Sample("s", tuple(turns), pictures)


@settings(max_examples=300, deadline=None)
@given(any_sample(), st.sampled_from(VIEWS))
def test_no_future_reaches_a_model_in_any_dialogue(sample: Sample, view: WeaveOptions):
    check_no_future(sample, view)


@settings(max_examples=300, deadline=None)
@given(any_sample(), st.sampled_from([view for view in VIEWS if view.history in ("none", "partial")]))
def test_labels_and_renumbered_mentions_agree_in_any_dialogue(sample: Sample, view: WeaveOptions):
    replies = dialogue(sample)
    for turn in sample.turns:
        if turn.modality != "image" or len(find_mentions(turn.prompt_text)) < 2:
            continue
        (message,) = Weave().build_messages(sample, turn, replies, view)
        new = find_mentions(message.parts[-1].text)  # type: ignore[union-attr]
        labels = {part.label: part for part in message.parts if isinstance(part, Image)}
        for old, now in zip(find_mentions(turn.prompt_text), new, strict=True):
            expected = history.find_image(sample, old, turn, replies, view)
            assert (now in labels) == (expected is not None)
            assert expected is None or labels[now].digest == expected.digest


def test_the_released_loop_is_chosen_by_what_is_asked():
    choose = Weave().parse_options
    assert choose({"official": True}).loop == "bagel"
    assert choose({"official": True, "turns": "text"}).loop == "gpt"
    assert choose({"official": True, "turns": "text", "loop": "bagel"}).loop == "bagel"
    for wrong in ({"loop": "gpt"}, {"loop": "gpt", "official": True}, {"loop": "gpt", "turns": "text"}):
        with pytest.raises(UserError, match="loop gpt is the released chat for text turns"):
            choose(wrong)
