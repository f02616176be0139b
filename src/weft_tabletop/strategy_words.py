"""How strategies speak to the tiny model and to the oracle: in the tabletop's own sentences, about pictures shown with
them.

    plan      Describe <picture> after this: Add a red star at b2 in the table.
    draw      Draw a white table with ...          (the plan, as a request)
    review    Was this done from <picture> to <picture>? Add ...
    redraw    <picture> Correct image: at b2 there should be a red star.          (the objection, as a request)
    weave     Draw a white table with ...          Add a red star at b2 in the table. <picture>          (a planner's
    order, as a request)
    pick      Which of <picture> and <picture> shows <picture> after this? Add ...

Only a request that names one picture, and whose result follows from it, can be planned and reviewed; the others are
drawn as they are."""

from collections.abc import Sequence

from weft.models.compose.phrasing import AskModel, Candidate
from weft.types import Image, Message, Modality, Part, Reply, Text
from weft_tabletop.world.language import QUESTIONS, UNQUOTED, WORDINGS, parse, parse_scene, wording
from weft_tabletop.world.listening import read_request


class TableWords:
    def plan_request(self, messages: tuple[Message, ...], kind: Modality) -> tuple[Message, ...] | None:
        found = find_request(messages)
        if found is None:
            return None
        return _asked("plan", found[0], image=found[1])

    def with_plan(self, messages: tuple[Message, ...], plan: str, kind: Modality) -> tuple[Message, ...]:
        """A plan that is no description of a table is no plan."""
        if parse_scene(plan) is not None:
            return (Message("user", (Text(f"Draw {plan.rstrip('.')}."),)),)
        return messages

    def image_request(self, order: str, images: Sequence[Image]) -> tuple[Message, ...]:
        """A planner's order: a table in words, or what is to be done to the last of the images at hand."""
        asked = parse(order)
        if asked is not None and asked.images:
            about = tuple(images[-1:])
        else:
            about = ()
        return (Message("user", (Text(order), *about)),)

    def review_request(self, messages: tuple[Message, ...], made: Candidate) -> tuple[Message, ...] | None:
        found = find_request(messages)
        drawn = _last(made)
        if found is None or drawn is None:
            return None
        return _asked("fulfils", found[0], image=found[1], source=drawn)

    def is_approval(self, review: str) -> bool:
        return not review.startswith("no, ")

    def redraw_request(self, messages: tuple[Message, ...], made: Candidate, review: str) -> tuple[Message, ...]:
        objection = review.removeprefix("no, ").rstrip(".")
        text = WORDINGS["correct"][0].format(image="image", objection=objection)
        drawn = _last(made)
        if drawn is not None and parse(text) is not None:
            return (Message("user", (drawn, Text(text))),)
        return messages

    async def pick(
        self, ask: AskModel, messages: tuple[Message, ...], made: Sequence[Candidate]
    ) -> tuple[int, list[Reply]]:
        """Two at a time, the winner goes on."""
        found = find_request(messages)
        drawn = [image for one in made if (image := _last(one)) is not None]
        best = 0
        said = list[Reply]()
        if found is None or len(drawn) < len(made):
            return best, said
        for other in range(1, len(drawn)):
            said.append(await ask(_asked("chosen", found[0], image=found[1], source=drawn[best], other=drawn[other])))
            if said[-1].outcome == "failed":
                break
            if said[-1].text.strip().startswith("the second"):
                best = other
        return best, said


def _last(made: Candidate) -> Image | None:
    pictures = [part for part in made if isinstance(part, Image)]
    if pictures:
        return pictures[-1]
    return None


def find_request(messages: tuple[Message, ...]) -> tuple[str, Image] | None:
    """The last request in words that name no number, and the picture it is to be done to."""
    text, images = read_request(messages)
    asked = parse(text)
    if asked is None or asked.kind in QUESTIONS or asked.kind in UNQUOTED or set(asked.images) != {"image"}:
        return None
    name = asked.images["image"]
    if name.startswith("Image #"):
        number = int(name.removeprefix("Image #"))
    else:
        number = max(images, default=0)
    if number in images:
        return (text.replace(name, "the table"), images[number])
    return None


def _asked(kind: str, done: str, **images: Image) -> tuple[Message, ...]:
    numbers = {slot: number for number, slot in enumerate(images, start=1)}
    text = wording(WORDINGS[kind][0], {"done": done}, {slot: f"Image #{number}" for slot, number in numbers.items()})
    return _shown(text, dict(enumerate(images.values(), start=1)))


def _shown(text: str, images: dict[int, Image]) -> tuple[Message, ...]:
    """One message, each picture where it is first mentioned."""
    parts: list[Part] = []
    rest = text
    while True:
        places = {number: at for number in images if (at := rest.find(f"Image #{number}")) >= 0}
        if not places:
            break
        number = min(places, key=lambda one: places[one])
        before, _, rest = rest.partition(f"Image #{number}")
        parts += [Text(before), images[number]]
    return (Message("user", tuple(part for part in (*parts, Text(rest)) if not isinstance(part, Text) or part.text)),)
