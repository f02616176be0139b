"""Models made of Models: roles with limits, memo and price of their own; thoughts and states that go where they belong;
tasks that are handed in now and collected later."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil

import weft
from server import Provider, data_url, drawn, judge_answer
from waiting import until, until_in_loop
from weft.calls.budget import Budget
from weft.calls.caller import Caller, EndpointDown
from weft.errors import ReuseWarning, UserError
from weft.models.compose import apply_strategy
from weft.models.compose.phrasing import English
from weft.models.endpoint import Endpoint, EndpointReply, TaskEndpoint, TicketExpired
from weft.models.registry import resolve_model
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Image, Message, Reply, Request, State, Takes, Text, Thought, Usage

Serve = Callable[..., Provider]
ASK = (Message("user", (Text("hello"),)),)


def two_minds(seen: Any) -> dict[str, Any]:
    if seen.is_judge:
        return judge_answer(seen)
    if "modalities" in seen.body:
        return {"role": "assistant", "content": "", "images": [{"image_url": {"url": data_url(drawn(seen.digest))}}]}
    return {"role": "assistant", "content": f"brief {seen.digest[:6]}", "reasoning_content": "hm"}


def test_a_cascade_thinks_with_one_model_and_draws_with_another(toy: Path, tmp_path: Path, serve: Serve):
    reasoner, painter = serve(answer=two_minds), serve(answer=two_minds)
    model = f"cascade:reasoner=openai-chat/thinks@{reasoner.url},painter=openai-chat/draws@{painter.url}"
    run = weft.evaluate(
        "weave",
        data=toy,
        home=tmp_path / "home",
        model=model,
        judge=f"openai-chat/judge@{painter.url}",
        history="dialogue",
        concurrency=4,
    )
    drawn_turns = [turn for turn in run.turns if turn.modality == "image"]
    assert len(drawn_turns) == 6 and all(
        turn.reply.outcome == "answered" and len(turn.reply.keys) == 2 for turn in drawn_turns
    )
    assert all(turn.reply.thoughts.startswith("hm\nbrief ") for turn in drawn_turns), (
        "what was reasoned is kept as a thought"
    )
    assert {total.role: total.calls for total in run.totals} == {"reasoner": 10, "painter": 6, "judge": 22}
    told = run.record.manifest.model
    assert (
        told["provider"] == "composition"
        and told["parts"]["painter"]["model"] == "draws"
        and run.id.startswith("weave-cascade-")
    )
    asked = [seen for seen in reasoner.seen if len(seen.body["messages"]) > 1]
    assert asked and not any("hm" in seen.texts for seen in asked), "no thought is in a later history"
    calls = reasoner.count + painter.count
    again = weft.evaluate(
        "weave",
        data=toy,
        home=tmp_path / "home",
        model=model,
        judge=f"openai-chat/judge@{painter.url}",
        history="dialogue",
        concurrency=4,
    )
    assert reasoner.count + painter.count == calls and again.report("csv") == run.report("csv")


OWN = """
from weft.models.compose.base import Composition, join_replies
from weft.types import Message, Text, Thought
from msgspec.structs import replace

class Duo(Composition):
    roles = ("mind", "hand")
    async def reply(self, messages, want):
        plan = await self.ask("mind", messages, replace(want, modality="text"))
        if want.modality == "text":
            return plan
        made = await self.ask("hand", (*messages[:-1], Message("user", (*messages[-1].parts, Text(plan.text)))), want)
        return join_replies(replace(made, parts=(Thought(plan.text), *made.parts)), [plan])

def mind(messages, want):
    return "red" if want == "text" else None
mind.version = "1"

def hand(messages, want):
    from PIL import Image
    return Image.new("RGB", (8, 8), messages[-1][1][-1])
hand.version = "1"
"""


def test_a_composition_of_ones_own_is_a_class_in_a_file_and_may_stand_under_a_strategy(toy: Path, tmp_path: Path):
    (tmp_path / "duo.py").write_text(OWN)
    file = tmp_path / "duo.py"
    model = f"{file}:Duo:mind={file}:mind,hand={file}:hand"
    run = weft.evaluate("weave", data=toy, home=tmp_path / "home", model=model, judge="constant/7")
    assert all(turn.reply.outcome == "answered" for turn in run.turns) and run.id.startswith("weave-duo.py-duo-")
    under = weft.evaluate(
        "weave", data=toy, home=tmp_path / "home", model=model, judge="constant/7", strategy="best-of:2"
    )
    assert all(len(turn.reply.keys) >= 3 for turn in under.turns if turn.modality == "image"), (
        "two draws of two calls, some of them equal"
    )


ASKS = """
from weft.models.compose.base import Composition
from weft.types import Message, Text

class Asks(Composition):
    roles = ("mind",)
    async def reply(self, messages, want):
        return await self.ask("mind", (*messages[:-1], Message("user", (*messages[-1].parts, Text("STEP")))), want)

def mind(messages, want):
    return messages[-1][1][-1]
mind.version = "1"
"""


def test_a_composition_without_a_version_that_was_edited_is_another(toy: Path, tmp_path: Path):
    file = tmp_path / "asks.py"

    def evaluate(text: str, reuse: str = "") -> weft.Run:
        file.write_text(text)
        model = f"{file}:Asks:mind={file}:mind"
        return weft.evaluate("weave", data=toy, home=tmp_path / "home", model=model, judge="constant/7", reuse=reuse)

    def said(run: weft.Run) -> set[str]:
        return {turn.reply.text for turn in run.turns if turn.reply.text}

    first, second = evaluate(ASKS), evaluate(ASKS.replace("STEP", "other"))
    assert first.id != second.id and (said(first), said(second)) == ({"STEP"}, {"other"})
    with pytest.warns(ReuseWarning, match=f"differs from the model of {first.id} in its code"):
        assert evaluate(ASKS.replace("STEP", "third"), first.id).id == first.id
    declared = ASKS.replace("    roles", "    version = '1'\n    roles")
    one = evaluate(declared)
    with pytest.warns(ReuseWarning, match="the code or a value of .* has changed, its version '1' has not"):
        assert evaluate(declared.replace("STEP", "other")).id == one.id
    with pytest.raises(UserError, match="cannot continue .* version 1, and now it is 2"):
        evaluate(declared.replace("'1'", "'2'", 1), one.id)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            "cascade:reasoner=copy",
            "cascade has the roles reasoner, painter; give each a model, as in cascade:reasoner=MODEL,painter=MODEL",
        ),
        ("cascade:reasoner=copy,painter=copy,judge=copy", "has the roles reasoner, painter"),
        ("choir:first=copy", "there is no composition 'choir'; there is cascade"),
        ("cascade:reasoner=copy,painter=nosuch/x", "unknown model 'nosuch/x'"),
    ],
)
def test_mistakes_in_a_composition_are_one_clear_line(blobs: Blobs, model: str, said: str):
    with pytest.raises(UserError, match=said):
        resolve_model(model, blobs)


def test_options_of_a_part_are_named_by_its_role(blobs: Blobs):
    made = resolve_model("cascade:reasoner=tabletop/oracle,painter=tabletop/oracle", blobs, {"painter.error": "0.5"})
    assert made.endpoints["painter"].identity["error"] == 0.5 and made.endpoints["reasoner"].identity["error"] == 0.0
    with pytest.raises(UserError, match="say whose it is, as in painter.error=..."):
        resolve_model("cascade:reasoner=tabletop/oracle,painter=tabletop/oracle", blobs, {"error": "0.5"})


def test_a_class_is_a_composition_and_says_so_when_its_roles_are_missing(blobs: Blobs, tmp_path: Path):
    (tmp_path / "duo.py").write_text(OWN)
    with pytest.raises(
        UserError, match=r"is a composition: give its roles models, as in .*duo.py:Duo:mind=MODEL,hand=MODEL"
    ):
        resolve_model(f"{tmp_path / 'duo.py'}:Duo", blobs)


# strategies and whole documents


class Writer:
    """An inner model that writes illustrated answers, better each time, and says what is asked of it."""

    name, takes = "writer", Takes()

    def __init__(self, blobs: Blobs, review: str = "NO: too short", pick: str = "2") -> None:
        self.blobs, self.said, self.asked = blobs, {"review": review, "pick": pick}, list[str]()

    async def reply(self, messages: tuple[Message, ...], want: Request) -> Reply:
        text = " ".join(part.text for part in messages[-1].parts if isinstance(part, Text))
        self.asked.append(text)
        if want.modality == "text":
            return Reply("answered", (Text(self.said["pick" if "Candidate" in text else "review"]),))
        picture = self.blobs.put(drawn(f"{want.draw}"))
        return Reply("answered", (Thought("hm"), Text(f"draft {want.draw}"), picture, Text("the end")))


def test_a_strategy_reviews_and_chooses_whole_interleaved_replies(blobs: Blobs):
    want = Request("interleaved")
    verified = Writer(blobs)
    reply = asyncio.run(apply_strategy("self-verify:1", verified, blobs, English()).reply(ASK, want))
    assert reply.text == "draft 1the end" and len(reply.images) == 1, "the last one counts, all of it"
    assert "This answer was given to the last request:" in verified.asked[1] and "the end" in verified.asked[1]
    assert "Answer again, improved in this way." in verified.asked[2] and "hm" not in verified.asked[2]
    best = Writer(blobs)
    chosen = asyncio.run(apply_strategy("best-of:3", best, blobs, English()).reply(ASK, want))
    assert chosen.text == "draft 1the end" and "These answers were given to" in best.asked[-1]
    planned = Writer(blobs, review="first words, then a picture")
    asyncio.run(apply_strategy("cot", planned, blobs, English()).reply(ASK, want))
    assert "which pictures it shows" in planned.asked[0] and "Answer now, by this plan:" in planned.asked[1]


class Billed:
    """An inner model whose every reply is the same object, and costs the same."""

    name, takes = "billed", Takes()

    def __init__(self, blobs: Blobs) -> None:
        self._reply = Reply("answered", (blobs.put(drawn("one")),), usage=Usage(10, 2, 0.5, images=1))

    async def reply(self, messages: tuple[Message, ...], want: Request) -> Reply:
        return self._reply


def test_the_usage_of_every_candidate_is_counted_once_images_included(blobs: Blobs):
    reply = asyncio.run(apply_strategy("best-of:3", Billed(blobs), blobs, English()).reply(ASK, Request("image")))
    assert reply.usage == Usage(30, 6, 1.5, images=3)


NARRATOR = """
from weft.models.compose.base import Composition
from weft.types import Message, Text

class Narrated(Composition):
    roles = ("speaker",)
    async def reply(self, messages, want):
        return await self.ask("speaker", (Message("narrator", (Text("Once."),)),), want)
"""


def test_a_role_that_a_composition_invents_is_one_clear_line(toy: Path, tmp_path: Path):
    (tmp_path / "own.py").write_text(NARRATOR)
    model = f"{tmp_path / 'own.py'}:Narrated:speaker=copy"
    problem = "asks with a message with the role 'narrator' at position 0; a role is system, user or assistant"
    with pytest.raises(UserError, match=problem):
        weft.evaluate("weave", data=toy, home=tmp_path / "home", model=model, judge="constant/5")


# thoughts and states


class Remembers(Endpoint):
    """Gives a state with what it says, and keeps what it is sent."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.sent: list[tuple[Message, ...]] = []

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        self.sent.append(messages)
        return EndpointReply((Thought("deep", State("sig-1")), Thought("idle"), Text("hi", State("sig-2"))), "answered")


def test_a_state_goes_back_untouched_to_who_gave_it_and_to_nobody_else(tmp_path: Path):
    journal = Journal(tmp_path / "journal.sqlite")
    one, two = Remembers("one"), Remembers("two")
    first, second = (Caller(endpoint, role="model", journal=journal, budget=Budget()) for endpoint in (one, two))
    reply = asyncio.run(first.reply(ASK, Request("text")))
    assert reply.text == "hi" and reply.thoughts == "deep\nidle"
    history = (*ASK, Message("assistant", reply.parts), Message("user", (Text("and now?"),)))
    asyncio.run(first.reply(history, Request("text")))
    asyncio.run(second.reply(history, Request("text")))
    back = one.sent[1][1].parts
    assert [part.state.data for part in back if part.state] == ["sig-1", "sig-2"] and len(back) == 2, (
        "an idle thought stays at home"
    )
    assert two.sent[0][1].parts == (Text("hi"),), "another endpoint gets neither state nor thought"
    plain = (*ASK, Message("assistant", (Text("hi"),)), Message("user", (Text("and now?"),)))
    assert second.find_cached(plain, Request("text")) is not None, "and its key is as if there had never been one"
    assert first.find_cached(plain, Request("text")) is None
    journal.close()


# handed in now, collected later


class Tasks(TaskEndpoint):
    poll_interval = 0.01

    def __init__(self, after: int = 2) -> None:
        super().__init__("tasks")
        self.after, self.submitted, self.looks, self.gone = after, 0, 0, False

    async def submit(self, messages: tuple[Message, ...], want: Request) -> str:
        self.submitted += 1
        return f"ticket-{self.submitted}"

    async def collect(self, ticket: str, want: Request) -> EndpointReply | None:
        self.looks += 1
        if self.gone:
            self.gone = False
            raise TicketExpired(f"{ticket} is no more")
        return EndpointReply((Text(f"by {ticket}"),), "answered") if self.looks >= self.after else None


def caller(endpoint: Endpoint, journal: Journal) -> Caller:
    return Caller(endpoint, role="model", journal=journal, budget=Budget())


def test_an_answer_that_comes_later_is_waited_for_and_its_ticket_goes(tmp_path: Path):
    journal = Journal(tmp_path / "journal.sqlite")
    endpoint = Tasks(after=3)
    reply = asyncio.run(caller(endpoint, journal).reply(ASK, Request("text")))
    journal.flush()
    assert reply.text == "by ticket-1" and endpoint.looks == 3 and journal.find_ticket(reply.keys[0]) is None
    journal.close()


def test_who_is_stopped_while_waiting_leaves_the_ticket_for_the_next(tmp_path: Path):
    journal = Journal(tmp_path / "journal.sqlite")
    endless = Tasks(after=10**9)

    async def stopped() -> None:
        asked = asyncio.ensure_future(caller(endless, journal).reply(ASK, Request("text")))
        await until_in_loop("somebody who waits for what was handed in", lambda: endless.looks)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(stopped())
    later = Tasks(after=1)
    reply = asyncio.run(caller(later, journal).reply(ASK, Request("text")))
    assert reply.text == "by ticket-1" and later.submitted == 0, "collected, not handed in again"
    journal.close()


def test_a_ticket_that_leads_nowhere_is_handed_in_again(tmp_path: Path):
    journal = Journal(tmp_path / "journal.sqlite")
    endpoint = Tasks(after=1)
    endpoint.gone = True
    reply = asyncio.run(caller(endpoint, journal).reply(ASK, Request("text")))
    assert endpoint.submitted == 2 and reply.text == "by ticket-2"
    journal.close()


BATCH = """
import json, pathlib, time
from weft.models.endpoint import EndpointReply, TaskEndpoint
from weft.types import Text

DESK = pathlib.Path({desk!r})

class Batch(TaskEndpoint):
    poll_interval = 0.05
    def __init__(self, blobs):
        super().__init__("batch", version="1")
        self.blobs = blobs
    async def submit(self, messages, want):
        ticket = f"{{want.turn_ref.sample}}-{{want.turn_ref.turn}}-{{want.modality}}"
        with (DESK / "submitted").open("a") as file:
            file.write(ticket + "\\n")
        return ticket
    async def collect(self, ticket, want):
        if not (DESK / "open").exists():
            return None
        from PIL import Image
        done = (Text(ticket),) if want.modality == "text" else (self.blobs.put_pil(Image.new("RGB", (8, 8), "red")),)
        return EndpointReply(done, "answered")
"""


def test_killed_between_submitting_and_collecting_the_next_command_collects(toy: Path, tmp_path: Path):
    (tmp_path / "batch.py").write_text(BATCH.format(desk=str(tmp_path)))
    words = [
        sys.executable,
        "-m",
        "weft",
        "run",
        "weave",
        "--data",
        str(toy),
        "--model",
        "batch.py:Batch",
        "--judge",
        "constant/5",
    ]
    process = subprocess.Popen(
        [*words, "--history", "none"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    submitted = tmp_path / "submitted"
    until(
        "a ticket of each of the four dialogues",
        lambda: len(submitted.read_text().split()) == tickets(tmp_path) == 4,
        process,
    )
    process.send_signal(signal.SIGKILL)
    process.wait()
    (tmp_path / "open").touch()
    done = subprocess.run([*words, "--history", "none"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    handed_in = submitted.read_text().split()
    assert len(handed_in) == len(set(handed_in)) == 10, "every request was handed in once"
    assert tickets(tmp_path) == 0


def tickets(folder: Path) -> int:
    import sqlite3

    path = folder / ".weft" / "journal.sqlite"
    if not path.exists():
        return 0
    db = sqlite3.connect(path)
    try:
        return db.execute("SELECT COUNT(*) FROM tickets").fetchone()[0]
    except sqlite3.OperationalError:
        return 0
    finally:
        db.close()


# what a user brings


def test_a_class_is_made_when_it_is_first_called_and_never_for_a_dry_run(toy: Path, tmp_path: Path):
    made = tmp_path / "made"
    (tmp_path / "heavy.py").write_text(
        f"class Heavy:\n    name, version = 'heavy', '1'\n    def __init__(self):\n        open({str(made)!r}, "
        "'a').write('x')\n"
        "    def __call__(self, messages, want):\n        return 'four' if want == 'text' else messages[-1][1][0]\n"
    )
    words = [
        sys.executable,
        "-m",
        "weft",
        "run",
        "weave",
        "--data",
        str(toy),
        "--model",
        "heavy.py:Heavy",
        "--judge",
        "constant/5",
    ]

    def go(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*words, "--turns", "text", *more], cwd=tmp_path, capture_output=True, text=True)

    assert go("--dry-run").returncode == 0 and not made.exists()
    assert go().returncode == 0 and made.read_text() == "x", "once, however many dialogues begin together"
    assert go().returncode == 0 and made.read_text() == "x", "all its answers are in the journal"


def test_a_class_that_calls_itself_something_else_once_it_is_made_is_told_what_to_do(toy: Path, tmp_path: Path):
    class Late:
        def __init__(self) -> None:
            self.version = "step-9"

        def __call__(self, messages: Any, want: str) -> str:
            return "four"

    with pytest.raises(EndpointDown, match=r"calls its version step-9 once it is created.*set version on the class"):
        weft.evaluate("weave", data=toy, home=tmp_path / "home", model=Late, judge="constant/5", turns="text")


class Sketch(Endpoint):
    """A user's own endpoint: a name, what can change an answer, one try."""

    takes = Takes(max_side=16)
    concurrency = 3

    def __init__(self, blobs: Blobs, colour: str = "red") -> None:
        super().__init__("sketch", colour=colour)
        self._blobs, self._colour = blobs, colour

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        sizes = [
            max(part.width, part.height) for message in messages for part in message.parts if isinstance(part, Image)
        ]
        assert all(size <= 16 for size in sizes)
        if want.modality == "text":
            return EndpointReply((Text(f"{want.turn_ref.benchmark} {want.turn_ref.sample}"),), "answered")
        return EndpointReply((self._blobs.put_pil(Pil.new("RGB", (9, 9), self._colour)),), "answered")


def test_a_users_endpoint_is_taken_as_class_as_object_and_from_a_file(toy: Path, tmp_path: Path):
    blobs = Blobs(tmp_path / "home" / "blobs")
    by_class = weft.evaluate(
        "weave", data=toy, home=tmp_path / "home", model=Sketch, model_options={"colour": "blue"}, judge="constant/5"
    )
    assert by_class.record.manifest.model["colour"] == "blue" and by_class.record.manifest.model.takes["max_side"] == 16
    assert {turn.reply.text for turn in by_class.turns if turn.modality == "text"} >= {"weave 7"}
    as_object = weft.evaluate(
        "weave", data=toy, home=tmp_path / "home", model=Sketch(blobs, "blue"), judge="constant/5"
    )
    assert as_object.id == by_class.id
    with pytest.raises(UserError, match="is created already: it takes no options"):
        weft.evaluate(
            "weave",
            data=toy,
            home=tmp_path / "home",
            model=Sketch(blobs),
            model_options={"colour": "x"},
            judge="constant/5",
        )

    class Duck:
        async def send(self, messages: Any, want: Any) -> Any: ...

    with pytest.raises(
        UserError, match=r"has `send` but is no endpoint: make its class one of weft.models.endpoint.Endpoint"
    ):
        weft.evaluate("weave", data=toy, home=tmp_path / "home", model=Duck(), judge="constant/5")


def test_a_model_named_in_weft_toml_has_its_options_and_its_price(toy: Path, tmp_path: Path, serve: Serve):
    provider = serve()
    (tmp_path / "weft.toml").write_text(
        f'[models.mine]\nuse = "openai-chat/m@{provider.url}"\ntemperature = 0.5\n[models.umpire]\nuse = "constant/5"\n'
        '[prices."m"]\nin = 1000.0\nout = 0.0\n'
    )
    words = [sys.executable, "-m", "weft", "run", "weave", "--data", str(toy), "--model", "mine", "--judge", "umpire"]
    done = subprocess.run([*words, "--model-opt", "seed=3"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {(seen.body["temperature"], seen.body["seed"]) for seen in provider.seen} == {(0.5, 3)} and len(
        provider.seen
    ) == 10
    told = json.loads(
        subprocess.run(
            [sys.executable, "-m", "weft", "report", "-f", "json"], cwd=tmp_path, capture_output=True, text=True
        ).stdout
    )
    assert told["runs"][0]["totals"][0]["cost"] == pytest.approx(1.0), (
        "ten calls of a hundred tokens at a thousand dollars a million"
    )
