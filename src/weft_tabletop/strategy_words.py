"""How strategies speak to the tiny model and to the oracle: in the tabletop's own sentences, about pictures shown with them.

    plan      Describe <picture> after this: Add a red star at b2 in the table.
    draw      Draw a white table with ...          (the plan, as a request)
    review    Was this done from <picture> to <picture>? Add ...
    redraw    <picture> Correct image: at b2 there should be a red star.          (the objection, as a request)
    weave     Draw a white table with ...          Add a red star at b2 in the table. <picture>          (a planner's order, as a request)
    pick      Which of <picture> and <picture> shows <picture> after this? Add ...

Only a request that names one picture, and whose result follows from it, can be planned and reviewed; the others are drawn as they are.
"""

from collections.abc import Sequence

from weft.models.compose.words import Ask, Made
from weft.types import Image, Kind, Message, Part, Reply, Text
from weft_tabletop.world.language import QUESTIONS, UNQUOTED, WORDINGS, parse, scene_described, wording
from weft_tabletop.world.listening import understand


class TableWords:
    def plan(self, messages: tuple[Message, ...], kind: Kind) -> tuple[Message, ...] | None:
        found = request(messages)
        return None if found is None else _asked("plan", found[0], image=found[1])

    def with_plan(self, messages: tuple[Message, ...], plan: str, kind: Kind) -> tuple[Message, ...]:
        """A plan that is no description of a table is no plan."""
        return (Message("user", (Text(f"Draw {plan.rstrip('.')}."),)),) if scene_described(plan) is not None else messages

    def draw(self, order: str, images: Sequence[Image]) -> tuple[Message, ...]:
        """A planner's order: a table in words, or what is to be done to the last of the images at hand."""
        asked = parse(order)
        about = tuple(images[-1:]) if asked is not None and asked.images else ()
        return (Message("user", (Text(order), *about)),)

    def review(self, messages: tuple[Message, ...], made: Made) -> tuple[Message, ...] | None:
        found, drawn = request(messages), _last(made)
        return None if found is None or drawn is None else _asked("fulfils", found[0], image=found[1], source=drawn)

    def is_fine(self, review: str) -> bool:
        return not review.startswith("no, ")

    def redraw(self, messages: tuple[Message, ...], made: Made, review: str) -> tuple[Message, ...]:
        objection = review.removeprefix("no, ").rstrip(".")
        text = WORDINGS["correct"][0].format(image="image", objection=objection)
        drawn = _last(made)
        return (Message("user", (drawn, Text(text))),) if drawn is not None and parse(text) is not None else messages

    async def pick(self, ask: Ask, messages: tuple[Message, ...], made: Sequence[Made]) -> tuple[int, list[Reply]]:
        """Two at a time, the winner goes on."""
        found = request(messages)
        drawn = [image for one in made if (image := _last(one)) is not None]
        best, said = 0, list[Reply]()
        if found is None or len(drawn) < len(made):
            return best, said
        for other in range(1, len(drawn)):
            said.append(await ask(_asked("chosen", found[0], image=found[1], source=drawn[best], other=drawn[other])))
            if said[-1].outcome == "failed":
                break
            best = other if said[-1].text.strip().startswith("the second") else best
        return best, said


def _last(made: Made) -> Image | None:
    pictures = [part for part in made if isinstance(part, Image)]
    return pictures[-1] if pictures else None


def request(messages: tuple[Message, ...]) -> tuple[str, Image] | None:
    """The last request in words that name no number, and the picture it is to be done to."""
    text, images = understand(messages)
    asked = parse(text)
    if asked is None or asked.kind in QUESTIONS or asked.kind in UNQUOTED or set(asked.images) != {"image"}:
        return None
    name = asked.images["image"]
    number = int(name.removeprefix("Image #")) if name.startswith("Image #") else max(images, default=0)
    return (text.replace(name, "the table"), images[number]) if number in images else None


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
