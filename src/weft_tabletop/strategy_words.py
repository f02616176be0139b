"""How strategies phrase their requests to the tiny model and to the oracle: in the tabletop's own sentences, with
images.

    plan      Describe <image> after this: Add a red star at b2 in the table.
    draw      Draw a white table with ...                                (the plan, as a request)
    review    Was this done from <image> to <image>? Add ...
    redraw    <image> Correct image: at b2 there should be a red star.   (the objection, as a request)
    weave     Draw a white table with ...                                (a planner's order, as a request)
    pick      Which of <image> and <image> shows <image> after this? Add ...

Only a request that names one image, and whose result follows from it, can be planned and reviewed; all others are drawn
directly."""

from collections.abc import Sequence

from weft.models.compose.phrasing import AskModel, Candidate
from weft.types import Image, Message, Modality, Part, Reply, Text
from weft_tabletop.world.language import fill_wording, parse, parse_scene
from weft_tabletop.world.listening import read_request
from weft_tabletop.world.wordings import QUESTIONS, UNQUOTED, WORDINGS


class TablePhrasing:
    """The phrasing of strategies (`weft.models.compose.phrasing`) for tabletop models."""

    def plan_request(self, messages: tuple[Message, ...], kind: Modality) -> tuple[Message, ...] | None:
        request = find_request(messages)
        if request is None:
            return None
        text, image = request
        return _build_request("plan", text, image=image)

    def with_plan(self, messages: tuple[Message, ...], plan: str, kind: Modality) -> tuple[Message, ...]:
        """The plan as a request, if it describes a table; else the messages as they are."""
        if parse_scene(plan) is None:
            return messages
        return (Message("user", (Text(f"Draw {plan.rstrip('.')}."),)),)

    def image_request(self, order: str, images: Sequence[Image]) -> tuple[Message, ...]:
        """A planner's order: a description of a table, or a change of the last image."""
        request = parse(order)
        if request is None or not request.images:
            return (Message("user", (Text(order),)),)
        return (Message("user", (Text(order), *images[-1:])),)

    def review_request(self, messages: tuple[Message, ...], output: Candidate) -> tuple[Message, ...] | None:
        request = find_request(messages)
        candidate = _last_image(output)
        if request is None or candidate is None:
            return None
        text, image = request
        return _build_request("fulfils", text, image=image, source=candidate)

    def is_approval(self, review: str) -> bool:
        return not review.startswith("no, ")

    def redraw_request(self, messages: tuple[Message, ...], output: Candidate, review: str) -> tuple[Message, ...]:
        """The objection as a request about the image, if it can be understood; else the messages as they are."""
        objection = review.removeprefix("no, ").rstrip(".")
        text = WORDINGS["correct"][0].format(image="image", objection=objection)
        candidate = _last_image(output)
        if candidate is None or parse(text) is None:
            return messages
        return (Message("user", (candidate, Text(text))),)

    async def pick(
        self, ask: AskModel, messages: tuple[Message, ...], candidates: Sequence[Candidate]
    ) -> tuple[int, list[Reply]]:
        """Compare two candidates at a time; the winner meets the next one. Return its index and the replies."""
        request = find_request(messages)
        images: list[Image] = []
        for candidate in candidates:
            image = _last_image(candidate)
            if image is not None:
                images.append(image)
        best = 0
        replies: list[Reply] = []
        if request is None or len(images) < len(candidates):
            return best, replies
        text, before = request
        for other in range(1, len(images)):
            reply = await ask(_build_request("chosen", text, image=before, source=images[best], other=images[other]))
            replies.append(reply)
            if reply.outcome == "failed":
                break
            if reply.text.strip().startswith("the second"):
                best = other
        return best, replies


def _last_image(candidate: Candidate) -> Image | None:
    images = [part for part in candidate if isinstance(part, Image)]
    if images:
        return images[-1]
    return None


def find_request(messages: tuple[Message, ...]) -> tuple[str, Image] | None:
    """The last request, in words without image numbers, and the image it is about; None where it cannot be planned."""
    text, images = read_request(messages)
    request = parse(text)
    if request is None or request.kind in QUESTIONS or request.kind in UNQUOTED or set(request.images) != {"image"}:
        return None
    name = request.images["image"]
    if name.startswith("Image #"):
        number = int(name.removeprefix("Image #"))
    else:
        number = max(images, default=0)
    if number not in images:
        return None
    return text.replace(name, "the table"), images[number]


def _build_request(kind: str, quoted: str, **images: Image) -> tuple[Message, ...]:
    """A request about images that quotes another one; each image is where the text first mentions it."""
    names = {slot: f"Image #{number}" for number, slot in enumerate(images, start=1)}
    rest = fill_wording(WORDINGS[kind][0], {"done": quoted}, names)
    by_name = {names[slot]: image for slot, image in images.items()}
    parts: list[Part] = []
    while True:
        mentioned = [name for name in by_name if name in rest]
        if not mentioned:
            break
        name = min(mentioned, key=rest.index)
        before, _, rest = rest.partition(name)
        if before:
            parts.append(Text(before))
        parts.append(by_name[name])
    if rest:
        parts.append(Text(rest))
    return (Message("user", tuple(parts)),)
