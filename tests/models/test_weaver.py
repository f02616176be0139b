"""A planner and a visualizer: orders as planners write them, well and badly; what each picture is shown; what is drawn
at the same time; what happens when one of the two fails; streams that were cut; sizes."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import weft
from server import Provider, data_url, drawn
from waiting import HANGS, comes_to_an_end, until
from weft.errors import UserError
from weft.models.compose.imagine import MAX_IMAGES, MAX_SIDE, MIN_SIDE, ImageOrder, parse_plan
from weft.models.compose.weaver import PROGRESS_LISTENER, Weaver, WeaverProgress
from weft.models.sizes import nearest_ratio
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Image, Message, Reply, Request, Takes, Text, Thought

Serve = Callable[..., Provider]
ASK = (Message("user", (Text("A guide in pictures."),)),)


def words(text: str) -> list[str | tuple[str, Any, Any]]:
    return [
        part.strip() if isinstance(part, str) else (part.prompt, part.size, part.uses)
        for part in parse_plan(text).parts
    ]


def test_words_and_orders_in_their_order():
    text = 'One.\n<imagine size="640x480" uses="none">a cat</imagine>\nTwo.\n<imagine aspect="1:1" uses="1">the cat sleeps</imagine> End.'
    assert words(text) == ["One.", ("a cat", (640, 480), ()), "Two.", ("the cat sleeps", (1024, 1024), (1,)), "End."]
    assert parse_plan(text).notes == ()
    assert words("<imagine>a</imagine><IMAGINE uses='1, 2'>b</IMAGINE>") == [("a", None, None), ("b", None, (1,))]


def test_orders_between_img_tags_are_orders_too():
    text = "One.<img>a cat</img>Two.<img size='640x480' uses='1'>the cat sleeps</img><imagine>a dog</imagine>"
    assert words(text) == [
        "One.",
        ("a cat", None, None),
        "Two.",
        ("the cat sleeps", (640, 480), (1,)),
        ("a dog", None, None),
    ]
    assert parse_plan(text).notes == ()
    assert parse_plan("Use <b>bold</b>, <br> and List<T>; 1 <i and i> 2").notes == ()


@pytest.mark.parametrize(
    ("text", "due", "note"),
    [
        ("a<imagine>b", ["a", "b"], "image 1 was not closed"),
        ("a<imagine>b<imagine>c</imagine>d", ["a", "b", "c", "d"], "image 1 was not closed before the next"),
        (
            "<imagine>out <imagine>in</imagine> rest</imagine>",
            ["out", "in", "rest"],
            "a closing tag without a block was dropped",
        ),
        ("a</imagine>b", ["a", "b"], "a closing tag without a block was dropped"),
        ("a<imagine>  </imagine>b", ["a", "b"], "has no words, and is no image"),
        ("a<imagine>b</imagine>c <imag", ["a", "b", "c"], "the text ends within a tag"),
        ("a<imagine>b</imag", ["a", "b"], "the text ends within a tag"),
        ('a<imagine size="10', ["a"], "the text ends within a tag"),
        ('<imagine size="9x9">b</imagine>', ["b"], "its size could not be used"),
        ('<imagine size="99999x8">b</imagine>', ["b"], "its size could not be used"),
        ('<imagine aspect="1:0">b</imagine>', ["b"], "its size could not be used"),
        ('<imagine aspect="0.0000000002:0">b</imagine>', ["b"], "its size could not be used"),
        ('<imagine aspect="0.001:0.0001">b</imagine>', ["b"], "its size could not be used"),
        ('<imagine uses="1">b</imagine>', ["b"], "names images that do not exist yet"),
        ('<imagine uses="2">a</imagine><imagine uses="1">b</imagine>', ["a", "b"], "image 1: '2' names images"),
        ("a<img>b", ["a", "b"], "image 1 was not closed"),
        ("a<image>b</image>", ["a<image>b</image>"], "<image> in the text is no order"),
        ("a<picture 1>", ["a<picture 1>"], "<picture> in the text is no order"),
        ('a<img src="b.png">c', ['a<img src="b.png">c'], "<img> in the text is no order"),
        ("a<imagine>b</imagine>c<img", ["a", "b", "c"], "the text ends within a tag"),
    ],
)
def test_what_planners_do_wrong_is_taken_as_it_was_meant_and_told(text: str, due: list[str], note: str):
    plan = parse_plan(text)
    assert [part.strip() if isinstance(part, str) else part.prompt for part in plan.parts] == due
    assert any(note in told for told in plan.notes), plan.notes


def test_none_fifty_and_far_too_many():
    assert parse_plan("Only words.").images == [] and parse_plan("").parts == ()
    fifty = parse_plan("".join(f"Step {at}.<imagine>{at}</imagine>" for at in range(50)))
    assert [one.prompt for one in fifty.images] == [str(at) for at in range(50)] and not fifty.notes
    many = parse_plan("".join(f"w{at}<imagine>{at}</imagine>" for at in range(90)))
    assert len(many.images) == MAX_IMAGES and "90 images are planned" in many.notes[0]
    assert "w89" in many.parts, "no words are lost"


TAGS = ["<imagine>", "</imagine>", '<imagine size="512x256" uses="1">', "<imag", "imagine"]
PIECES = some.lists(some.sampled_from([*TAGS, "a", " ", "\n", "<", ">", '"', "=", "uses"]), max_size=40)


@given(PIECES)
@settings(max_examples=300, deadline=None)
def test_whatever_is_written_is_read(pieces: list[str]):
    plan = parse_plan("".join(pieces))
    for at, order in enumerate(plan.images, start=1):
        assert order.prompt.strip() and all(0 < used < at for used in order.uses or ())
        assert order.size is None or (min(order.size) >= MIN_SIDE and max(order.size) <= MAX_SIDE)


@given(PIECES, PIECES)
@settings(max_examples=200, deadline=None)
def test_what_was_closed_does_not_change_with_what_comes(before: list[str], after: list[str]):
    """So that a picture can be begun before the plan is whole."""
    closed = "".join(before).rpartition("</imagine>")
    begun = closed[0] + closed[1]
    early, whole = parse_plan(begun).images, parse_plan(begun + "".join(after)).images
    assert whole[: len(early)] == early


def test_long_texts_are_read_quickly():
    texts = ["<" * 100_000, "<imagine " * 20_000, "< " * 100_000, "<imagine" + " a=" * 60_000, "<imagine>" * 20_000]
    texts += ["<" + " " * 100_000, f"<imagine {'a' * 100_000}>", "</imagine>" * 50_000, "<imagine>x" * 50_000]
    with comes_to_an_end("texts that take hours, were they read in quadratic time"):
        for text in texts:
            assert len(parse_plan(text).notes) < 12


def test_the_nearest_ratio():
    assert [nearest_ratio(size) for size in ((1024, 1024), (1920, 1080), (768, 1024), (2000, 860))] == [
        "1:1",
        "16:9",
        "3:4",
        "21:9",
    ]


# the two together


class Part:
    """A model that says what it is told to, and remembers what it was asked."""

    def __init__(
        self, name: str, answer: Callable[[tuple[Message, ...], Request], Any], takes: Takes = Takes()
    ) -> None:
        self.name, self.takes, self._answer = name, takes, answer
        self.asked: list[tuple[tuple[Message, ...], Request]] = []
        self.at_once = self.most = 0

    async def reply(self, messages: tuple[Message, ...], want: Request) -> Reply:
        self.asked.append((messages, want))
        number = f"{self.name} {len(self.asked)}"
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await asyncio.sleep(0.02)
            made = self._answer(messages, want)
            parts = made if isinstance(made, tuple) else (made,)
            return made if isinstance(made, Reply) else Reply("answered", parts, keys=(number,))
        finally:
            self.at_once -= 1


def last_words(messages: tuple[Message, ...]) -> str:
    return [part.text for part in messages[-1].parts if isinstance(part, Text)][-1]


def woven(
    tmp_path: Path, plan: str | Reply, draw: Callable[[str], Any] | None = None, kind: Any = "interleaved", **more: Any
) -> tuple[Reply, Part, Part]:
    blobs = Blobs(tmp_path / "blobs")

    def picture(messages: tuple[Message, ...], want: Request) -> Any:
        found = last_words(messages)
        made = draw(found) if draw is not None else None
        return made if made is not None else blobs.put(drawn(found, 48))

    planner = Part("planner", lambda messages, want: Text(plan) if isinstance(plan, str) else plan)
    visualizer = Part("visualizer", picture, **more)
    weaver = Weaver("weaver", {"planner": planner, "visualizer": visualizer}, blobs)
    return asyncio.run(weaver.reply(ASK, Request(kind))), planner, visualizer


CHAIN = "One.<imagine>a</imagine>Two.<imagine>b</imagine>Three.<imagine>c</imagine>"
APART = CHAIN.replace("<imagine>", '<imagine uses="none">')


def shown_in(parts: Any) -> str:
    return " ".join(part.text if isinstance(part, Text) else "picture" for part in parts)


def test_one_message_with_words_and_pictures_in_their_order(tmp_path: Path):
    reply, planner, visualizer = woven(tmp_path, f"<think>hm</think>{CHAIN}End.")
    assert shown_in(reply.output) == "One. picture Two. picture Three. picture End."
    assert reply.outcome == "answered" and reply.thoughts == "hm" and len(reply.keys) == 4
    assert len({part.digest for part in reply.images}) == 3
    assert [message.role for message in planner.asked[0][0]] == ["system", "user"] and planner.asked[0][
        1
    ].modality == "text"
    assert all(want.modality == "image" for _, want in visualizer.asked)


def test_each_order_comes_with_all_that_is_before_it(tmp_path: Path):
    """Words and pictures; only those pictures that it uses, where it says so."""
    _, _, visualizer = woven(tmp_path, CHAIN)
    shown = [
        [part.text if isinstance(part, Text) else "picture" for part in messages[0].parts]
        for messages, _ in visualizer.asked
    ]
    assert shown[2][:2] == ["A document was asked for:", "A guide in pictures."]
    assert shown[2][2:-1] == ["The document so far:", "One.", "picture", "Two.", "picture", "Three."] and shown[2][
        -1
    ].endswith("\nc")
    _, _, visualizer = woven(tmp_path, CHAIN.replace("<imagine>c", '<imagine uses="1">c'))
    shown = [
        [part.text if isinstance(part, Text) else "picture" for part in messages[0].parts]
        for messages, _ in visualizer.asked
    ]
    third = next(one for one in shown if one[-1].endswith("\nc"))
    assert third[2:-1] == ["The document so far:", "One.", "picture", "Two.", "[picture 2]", "Three."]


def test_as_far_as_the_visualizer_can_take_it(tmp_path: Path):
    _, _, visualizer = woven(tmp_path, CHAIN, takes=Takes(images="list"))
    third = visualizer.asked[2][0][0].parts
    assert [isinstance(part, Image) for part in third] == [True, True, False] and "[image 1]" in last_words(
        visualizer.asked[2][0]
    )
    _, _, visualizer = woven(tmp_path, CHAIN, takes=Takes(images="none"))
    assert all(
        isinstance(part, Text) for part in visualizer.asked[2][0][0].parts
    ) and "[picture not shown]" in last_words(visualizer.asked[2][0])


def test_what_does_not_depend_on_each_other_is_drawn_at_the_same_time(tmp_path: Path):
    _, _, chained = woven(tmp_path, CHAIN)
    _, _, apart = woven(tmp_path, APART)
    assert (chained.most, apart.most) == (1, 3)
    two = CHAIN.replace("<imagine>b", '<imagine uses="1">b').replace("<imagine>c", '<imagine uses="1">c')
    _, _, forked = woven(tmp_path, two)
    assert forked.most == 2, "both wait for the first, and not for each other"


def test_sizes_are_the_planners_choice(tmp_path: Path):
    plan = '<imagine size="640x320" uses="none">a</imagine><imagine aspect="9:16" uses="none">b</imagine><imagine uses="none">c</imagine>'
    _, _, visualizer = woven(tmp_path, plan)
    sizes = {last_words(messages).split("\n")[1]: want.size for messages, want in visualizer.asked}
    assert sizes == {"a": (640, 320), "b": (768, 1360), "c": None}
    assert any("It is 640 x 320 pixels." in last_words(messages) for messages, _ in visualizer.asked)


def test_a_question_needs_no_picture_and_a_picture_no_words(tmp_path: Path):
    reply, _, visualizer = woven(tmp_path, "Forty-two.")
    assert reply.outcome == "answered" and reply.text == "Forty-two." and not visualizer.asked
    reply, planner, _ = woven(tmp_path, "<imagine>a</imagine>", kind="image")
    assert reply.last_image is not None and "one picture, and no words" in planner.asked[0][0][0].parts[0].text  # type: ignore[union-attr]
    reply, _, _ = woven(tmp_path, "I will not draw.", kind="image")
    assert reply.outcome == "empty"
    reply, _, visualizer = woven(tmp_path, "words", kind="text")
    assert reply.text == "words" and not visualizer.asked


def test_what_a_visualizer_will_not_draw_is_missing_and_told(tmp_path: Path):
    reply, _, _ = woven(
        tmp_path, APART, lambda said: Reply("refused", reason="not that") if said.endswith("b") else None
    )
    assert (
        reply.outcome == "answered"
        and len(reply.images) == 2
        and "image 2 is missing (refused: not that)" in reply.reason
    )
    nothing, _, _ = woven(tmp_path, "<imagine>a</imagine>", lambda said: Reply("empty", reason="hm"))
    assert nothing.outcome == "empty"


def test_what_fails_through_no_fault_of_its_own_leaves_the_reply_unscored(tmp_path: Path):
    """All that was drawn besides is behind it, and will not be asked for again."""
    gone = Reply("failed", reason="gone", keys=("lost",))
    reply, _, visualizer = woven(tmp_path, APART, lambda said: gone if said.endswith("b") else None)
    assert (reply.outcome, reply.reason, reply.parts) == ("failed", "gone", ())
    assert len(reply.keys) == 4 and len(visualizer.asked) == 3
    chained, _, visualizer = woven(tmp_path, CHAIN, lambda said: gone if said.endswith("b") else None)
    assert chained.outcome == "failed" and len(visualizer.asked) == 2, "what waits for it is not asked"
    broken, _, visualizer = woven(tmp_path, Reply("failed", reason="no planner"))
    assert broken.outcome == "failed" and not visualizer.asked
    refused, _, _ = woven(tmp_path, Reply("refused", reason="no"))
    assert refused.outcome == "refused"


def test_a_visualizer_that_raises_waits_for_those_at_work(tmp_path: Path):
    done: list[str] = []

    def draw(said: str) -> Any:
        if said.endswith("a"):
            raise RuntimeError("budget")
        done.append(said)
        return None

    with pytest.raises(RuntimeError, match="budget"):
        woven(tmp_path, APART, draw)
    assert len(done) == 2


def test_progress_is_told_to_who_wants_it(tmp_path: Path):
    told: list[WeaverProgress] = []

    async def watched() -> None:
        PROGRESS_LISTENER.set(told.append)
        blobs = Blobs(tmp_path / "blobs")
        parts = {
            "planner": Part("planner", lambda messages, want: Text(APART)),
            "visualizer": Part("visualizer", lambda messages, want: blobs.put(drawn(last_words(messages), 48))),
        }
        await Weaver("weaver", parts, blobs).reply(ASK, Request("interleaved"))

    asyncio.run(watched())
    assert [(one.drawn, one.planned) for one in told] == [(0, 0), (0, 3), (1, 3), (2, 3), (3, 3)]


def test_thoughts_of_the_planner_are_no_plan(tmp_path: Path):
    plan = Reply("answered", (Thought("<imagine>never</imagine>"), Text("Words.")), keys=("k",))
    reply, _, visualizer = woven(tmp_path, plan)
    assert not visualizer.asked and reply.thoughts == "<imagine>never</imagine>" and reply.text == "Words."


def test_a_part_that_raises_costs_its_turn_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is stored comes again with every run: it must not end them all."""

    def broken(text: str) -> Any:
        raise ZeroDivisionError("hm")

    monkeypatch.setattr("weft.models.compose.weaver.parse_plan", broken)
    model = "weaver:planner=tabletop/oracle,visualizer=tabletop/oracle"
    run = weft.evaluate(
        "weaverbench", data=prompts(tmp_path / "data"), home=tmp_path / "home", judge="constant/max", model=model
    )
    assert {turn.reply.outcome for turn in run.turns} == {"failed"} and "ZeroDivisionError" in run.turns[0].reply.reason
    assert all(verdict.value is None for verdict in run.verdicts)


def test_a_dry_run_guesses_pictures(tmp_path: Path):
    from weft.evaluation.config import RunConfig
    from weft.evaluation.session import open_run

    model = "weaver:planner=openai-chat/a@http://127.0.0.1:9/v1,visualizer=openai-chat/b@http://127.0.0.1:9/v1"
    job = RunConfig(
        benchmark="weaverbench",
        data=prompts(tmp_path / "data"),
        home=tmp_path / "home",
        judge="constant/max",
        model=model,
    )

    async def foreseen() -> Any:
        async with open_run(job, dry=True) as session:
            return await session.dry_run(), session.dry_run_note

    shares, told = asyncio.run(foreseen())
    assert (shares["planner"].calls, shares["visualizer"].calls) == (4, 12) and "planners may differ" in told


# over the wire


PLAN = 'First.<imagine size="512x256" uses="none">a</imagine>Then.<imagine uses="1">b</imagine>Last.<imagine uses="none">c</imagine>'


def planner_and_painter(seen: Any) -> dict[str, Any]:
    if seen.is_judge:
        schema = seen.body["response_format"]["json_schema"]["schema"]["properties"]
        if "pictures" in schema:
            count = schema["pictures"]["minItems"]
            found: Any = {"pictures": [{"picture": at, "seen": "x", "one_picture": True} for at in range(count)]}
        else:
            found = {"scores": {name: {"Justification": "x", "Score": 8} for name in schema["scores"]["properties"]}}
        return {"role": "assistant", "content": json.dumps(found)}
    if "modalities" in seen.body:
        return {
            "role": "assistant",
            "content": "",
            "images": [{"image_url": {"url": data_url(drawn(seen.digest, 64))}}],
        }
    return {"role": "assistant", "content": PLAN}


def prompts(folder: Path, count: int = 4) -> Path:
    folder.mkdir(parents=True)
    lines = [
        {
            "id": f"p{at}",
            "category": "Daily Life",
            "input": [{"text": f"Guide {at} with exactly 3 images."}],
            "required_images": 3,
        }
        for at in range(count)
    ]
    (folder / "weaverbench.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_run_with_a_weaver_keeps_every_call_and_its_cost(tmp_path: Path, serve: Serve):
    plans, paints = serve(answer=planner_and_painter), serve(answer=planner_and_painter)
    model = f"weaver:planner=openai-chat/plans@{plans.url},visualizer=openai-chat/paints@{paints.url}"
    options = {"visualizer.sizes": "size"}
    given_: dict[str, Any] = {
        "data": prompts(tmp_path / "data"),
        "home": tmp_path / "home",
        "model": model,
        "model_options": options,
    }
    run = weft.evaluate("weaverbench", judge=f"openai-chat/judge@{plans.url}", **given_)
    assert all(len(turn.reply.images) == 3 and len(turn.reply.keys) == 4 for turn in run.turns)
    assert {total.role: total.calls for total in run.totals} == {"planner": 4, "visualizer": 12, "judge": 8}
    sizes = [seen.body.get("size") for seen in paints.seen]
    assert sizes.count("512x256") == 4 and sizes.count(None) == 8
    assert run.table().cells(run.name)["Acc"].value == 100.0
    calls = plans.count + paints.count
    again = weft.evaluate("weaverbench", judge=f"openai-chat/judge@{plans.url}", **given_)
    assert plans.count + paints.count == calls and again.report("csv") == run.report("csv")


def kept(home: Path) -> int:
    """Calls of the visualizer in the journal."""
    try:
        journal = Journal(home / "journal.sqlite", readonly=True)
    except UserError:  # not there yet, or just being made
        return 0
    try:
        return int(journal._rows("SELECT COUNT(*) FROM calls WHERE role = 'visualizer'")[0][0])
    finally:
        journal.close()


def test_killed_while_it_draws_it_goes_on_where_it_was(tmp_path: Path, serve: Serve):
    plans, paints = serve(answer=planner_and_painter), serve(answer=planner_and_painter, allowed=4)
    data = prompts(tmp_path / "data")
    program = f"""
import weft
weft.evaluate("weaverbench", data={str(data)!r}, home={str(tmp_path / "home")!r}, judge="openai-chat/judge@{plans.url}", concurrency=2,
    model="weaver:planner=openai-chat/plans@{plans.url},visualizer=openai-chat/paints@{paints.url}")
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    until(
        "four pictures in the journal, and two that are being drawn",
        lambda: kept(tmp_path / "home") == 4 and paints.count == 6,
        process,
    )
    process.send_signal(signal.SIGKILL)
    process.wait()
    paints.allowed = None
    subprocess.run([sys.executable, "-c", program], check=True, timeout=HANGS)
    assert paints.count == 12 + 2, "only what was in flight is drawn again"
    assert plans.count <= 4 + 8 + 2


def test_a_painter_of_ones_own_may_ask_for_the_size(tmp_path: Path):
    file = tmp_path / "own.py"
    file.write_text(
        "from PIL import Image\n"
        "def plans(messages, want):\n"
        "    return 'A.<imagine size=\"96x64\">x</imagine>'\n"
        "def paints(messages, want, size):\n"
        "    return Image.new('RGB', size or (8, 8), 'red')\n"
    )
    run = weft.evaluate(
        "weaverbench", data=prompts(tmp_path / "data", 1), home=tmp_path / "home", judge="constant/max",
        model=f"weaver:planner={file}:plans,visualizer={file}:paints",
    )  # fmt: skip
    (picture,) = run.turns[0].reply.images
    assert (picture.width, picture.height) == (96, 64)


def test_functions_with_a_size_of_their_own_are_left_alone(tmp_path: Path):
    file = tmp_path / "own.py"
    file.write_text(
        "def model(messages, want, size=512):\n"
        "    return 'it is ' + str(size)\n"
        "def judge(messages, want, question, /):\n"
        "    names = question.schema['properties']['scores']['properties']\n"
        "    return {'scores': {name: {'Score': 5} for name in names}}\n"
    )
    given_: dict[str, Any] = {
        "data": prompts(tmp_path / "data", 1),
        "home": tmp_path / "home",
        "model": f"{file}:model",
    }
    run = weft.evaluate("weaverbench", judge=f"{file}:judge", where={"count": "exact"}, **given_)
    assert run.turns[0].reply.text == "it is 512"
    assert next(one.value for one in run.verdicts if one.metric == "completeness") == 0.5


def test_orders_have_their_words():
    assert re.search("<imagine ", weft.models.compose.weaver.PLANNER_PROMPT) and ImageOrder("x").uses is None
