"""Pages of a dataset: the list of its records, one record with its images, and the problems of its files."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.data_format import DataFormat
from weft.datasets.images_of import all_images, input_images
from weft.datasets.record_index import ORDERS, RecordIndex, Selection, texts_of
from weft.report.gallery import Gallery
from weft.report.html import Html, build_page, inline_text, join, tag
from weft.report.numbers import page_header
from weft.report.parts import PartsWriter, render_expected
from weft.report.view.excerpts import excerpts_of, render_excerpts
from weft.types import Image, Part, Problem, Sample, Turn, find_mentions

PAGE_RECORDS = 24
MAX_IMAGES = 8  # of a record in the list
MAX_FIRST_TEXT = 240  # characters of a record's first request in the list
MAX_PROBLEMS = 1000  # on the page of problems
GROUP = "group."  # before an axis, in addresses


class ListAddress(Struct, frozen=True):
    """What the address of a list says: a selection and a page, from 1."""

    selection: Selection = Selection()
    page: int = 1

    @property
    def counts(self) -> dict[str, int]:
        """The filters by a least number."""
        return {"turns": self.selection.turns, "images": self.selection.images}

    def query(self, page: int | None = None) -> str:
        """Return the part of the address after the path; empty for the whole dataset."""
        selection = self.selection
        values: dict[str, str] = {"find": selection.find, "kind": selection.kind}
        values |= {GROUP + axis: group for axis, group in selection.groups.items()}
        values |= {name: str(number or "") for name, number in self.counts.items()}
        values["order"] = "" if selection.order == "dataset" else selection.order
        number = self.page if page is None else page
        values["page"] = "" if number == 1 else str(number)
        query = urlencode({name: value for name, value in values.items() if value}, errors="replace")
        return f"?{query}" if query else ""


def parse_address(query: Mapping[str, str]) -> ListAddress:
    """Return what an address asks for. What is not understood is left out."""
    groups: dict[str, str] = {}
    for name, value in query.items():
        if name.startswith(GROUP) and value:
            groups[name.removeprefix(GROUP)] = value
    order = query.get("order", "")
    selection = Selection(
        find=query.get("find", "").strip(),
        groups=groups,
        kind=query.get("kind", ""),
        turns=_read_number(query.get("turns", "")),
        images=_read_number(query.get("images", "")),
        order=order if order in ORDERS else "dataset",
    )
    return ListAddress(selection, max(1, _read_number(query.get("page", ""))))


def _read_number(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return int(text)
    return 0


def build_list_page(index: RecordIndex, address: ListAddress, gallery: Gallery, source: str) -> str:
    """Return one page of the records that an address selects. `source`: the dataset's folder."""
    numbers = index.select(address.selection)
    pages = max(1, -(-len(numbers) // PAGE_RECORDS))
    address = replace(address, page=min(address.page, pages))
    start = (address.page - 1) * PAGE_RECORDS
    writer = PartsWriter(gallery)
    shown = numbers[start : start + PAGE_RECORDS]
    rows = [_render_entry(index.sample(number), number, address, index.data_format, writer) for number in shown]
    links = _render_page_links(address, pages)
    body = tag(
        "main",
        tag("h1", inline_text(index.data_format.title)),
        _render_state(index),
        _render_form(index, address),
        tag("p", _describe_count(index, numbers, start), class_="soft"),
        links,
        tag("ul", rows, class_="records"),
        links,
    )
    return build_page(f"weft: {index.data_format.title}", _header(index, "Records", source), body, forms=True)


def _header(index: RecordIndex, current: str, source: str) -> Html:
    links = {"Records": "/"}
    if index.problems:
        links["Problems"] = "/problems"
    return page_header(source, current, links)


def _render_state(index: RecordIndex) -> Html | None:
    if index.failure:
        return tag("p", "Reading ended early: ", inline_text(index.failure), class_="warning")
    count = len(index.entries)
    if not index.is_complete and not index.records:
        return tag("p", "The dataset is being opened; ", tag("a", "reload", href=""), " in a moment", class_="warning")
    if not index.is_complete:
        text = f"{_thousands(count)} of {_thousands(index.records)} records have been read so far; "
        return tag("p", text, tag("a", "reload", href=""), " for the others", class_="warning")
    left_out = index.records - count
    if left_out > 0:
        text = f"{_thousands(left_out)} of {_thousands(index.records)} records cannot be used: "
        return tag("p", text, tag("a", "their problems", href="/problems"), class_="warning")
    return None


def _render_form(index: RecordIndex, address: ListAddress) -> Html:
    selection = address.selection
    search = tag("input", type="search", name="find", value=selection.find, placeholder="id, question, answer")
    fields: list[Html] = [tag("label", "search ", search, class_="wide")]
    for axis, counts in index.choices().items():
        options = {group: f"{group} ({_thousands(count)})" for group, count in counts}
        fields.append(_render_select(GROUP + axis, axis, options, selection.groups.get(axis, "")))
    kinds = dict(sorted(index.kind_counts.items()))
    if len(kinds) > 1:
        options = {kind: f"{kind} ({_thousands(count)})" for kind, count in kinds.items()}
        fields.append(_render_select("kind", "kind of turn", options, selection.kind))
    for name, number in address.counts.items():
        field = tag("input", type="number", name=name, min=0, value=number or "", inputmode="numeric")
        fields.append(tag("label", f"{name} at least ", field))
    orders = [tag("option", order, value=order, selected=order == selection.order) for order in ORDERS]
    fields.append(tag("label", "order ", tag("select", orders, name="order")))
    buttons = tag("span", tag("button", "Show"), " ", tag("a", "all records", href="/"))
    return tag("form", fields, buttons, class_="choose", method="get", action="/")


def _render_select(name: str, label: str, options: Mapping[str, str], chosen: str) -> Html:
    elements = [tag("option", "all", value="")]
    for value, text in options.items():
        elements.append(tag("option", text, value=value, selected=value == chosen))
    return tag("label", inline_text(label), " ", tag("select", elements, name=name))


def _describe_count(index: RecordIndex, numbers: Sequence[int], start: int) -> str:
    if not numbers:
        return "No record has all of this."
    last = min(start + PAGE_RECORDS, len(numbers))
    text = f"{_thousands(start + 1)} to {_thousands(last)} of {_thousands(len(numbers))} records"
    if len(numbers) < len(index.entries):
        text += f" (the dataset has {_thousands(len(index.entries))})"
    return text


def _render_page_links(address: ListAddress, pages: int) -> Html | None:
    if pages == 1:
        return None
    wanted = {1, address.page - 1, address.page, address.page + 1, pages}
    links: list[Html] = []
    previous = 0
    for page in sorted(number for number in wanted if 1 <= number <= pages):
        if page - previous > 1:
            links.append(tag("span", "…"))
        href = f"/{address.query(page)}"
        links.append(tag("a", _thousands(page), href=href, aria_current="page" if page == address.page else None))
        previous = page
    return tag("nav", links, class_="pages", aria_label="pages")


def _render_entry(
    sample: Sample, number: int, address: ListAddress, data_format: DataFormat, writer: PartsWriter
) -> Html:
    link = tag("a", inline_text(sample.id), href=f"/d/{number}{address.query()}")
    images = all_images(sample)
    thumbnails = [writer.image(image) for image in images[:MAX_IMAGES]]
    if len(images) > MAX_IMAGES:
        thumbnails.append(tag("span", f"and {len(images) - MAX_IMAGES} more", class_="soft small"))
    return tag(
        "li",
        tag("p", tag("b", link), " ", tag("span", inline_text(_describe_sample(sample)), class_="soft small")),
        _render_texts(sample, address.selection.find),
        tag("div", thumbnails, class_="images"),
    )


def _render_texts(sample: Sample, find: str) -> list[Html]:
    """Return what matches the search; without one, the beginning of the first request."""
    if find:
        excerpts, more = excerpts_of(texts_of(sample), find)
        if excerpts:
            return render_excerpts(excerpts, more)
    text = next((turn.prompt_text.strip() for turn in sample.turns if turn.prompt_text.strip()), "")
    if len(text) > MAX_FIRST_TEXT:
        text = f"{text[:MAX_FIRST_TEXT]}…"
    return [tag("p", tag("bdi", text), class_="words small")]


def _describe_sample(sample: Sample) -> str:
    words = [*dict.fromkeys(sample.groups.values())]
    words += [_count(len(sample.turns), "turn"), _count(len(all_images(sample)), "image")]
    return " · ".join(words)


def build_record_page(index: RecordIndex, number: int, address: ListAddress, gallery: Gallery) -> str:
    """Return a record: its images, and every turn with what is asked, the reference and the expected output."""
    sample = index.sample(number)
    numbers = index.select(address.selection)
    place = numbers.index(number) if number in numbers else None
    previous: int | None = None
    following: int | None = None
    if place is not None:
        previous = numbers[place - 1] if place > 0 else None
        following = numbers[place + 1] if place + 1 < len(numbers) else None
        address = replace(address, page=1 + place // PAGE_RECORDS)
    steps = _render_steps(address, previous, following)
    groups = " · ".join(f"{axis} {group}" for axis, group in sample.groups.items())
    writer = PartsWriter(gallery)
    body = tag(
        "main",
        steps,
        tag("h1", inline_text(sample.id)),
        tag("p", inline_text(groups), class_="soft"),
        _render_beginning(sample, writer),
        [_render_turn(sample, turn, index.data_format, writer) for turn in sample.turns],
        steps,
    )
    return build_page(sample.id, body, script="dialogue.js", kind="dialogue")


def _render_steps(address: ListAddress, previous: int | None, following: int | None) -> Html:
    query = replace(address, page=1).query()
    left = tag("span")
    right = tag("span")
    if previous is not None:
        left = tag("a", "previous (k)", href=f"/d/{previous}{query}", class_="previous")
    if following is not None:
        right = tag("a", "next (j)", href=f"/d/{following}{query}", class_="next")
    middle = tag("a", "all records", href=f"/{address.query()}", class_="all")
    return tag("p", left, middle, right, class_="steps small")


def _render_beginning(sample: Sample, writer: PartsWriter) -> Html | None:
    """Return the system prompt, and the input images that no request shows or mentions."""
    shown: set[str] = set()
    for turn in sample.turns:
        shown.update(image.digest for image in _prompt_images(sample, turn))
    parts: list[Part] = [image for image in _numbered(sample, input_images(sample)) if image.digest not in shown]
    system = tag(
        "details", tag("summary", "system prompt"), tag("div", sample.system, class_="words small", dir="auto")
    )
    pieces = [system if sample.system else None]
    if parts:
        pieces.append(tag("section", tag("h3", "images that no request mentions"), writer.parts(parts)))
    return join(pieces)


def _render_turn(sample: Sample, turn: Turn, data_format: DataFormat, writer: PartsWriter) -> Html:
    names = data_format.presentation.turn_names
    title = f"Turn {turn.number + 1}"
    if turn.number < len(names):
        title = names[turn.number]
    expected = render_expected(data_format.presentation, turn.gold) if turn.gold else None
    columns: list[Html] = []
    for name, parts in _answers(sample, turn, data_format):
        columns.append(tag("div", tag("h3", inline_text(name)), writer.parts(parts), class_="column"))
    return tag(
        "section",
        tag("h2", inline_text(title), tag("span", f" · {turn.modality}", class_="soft")),
        tag("div", writer.parts(_in_order(sample, turn)), expected, class_="prompt"),
        tag("div", columns, class_="columns") if columns else None,
        class_="turn",
        id=f"turn-{turn.number + 1}",
    )


def _in_order(sample: Sample, turn: Turn) -> list[Part]:
    """Return a request's parts, then the images that only its text mentions."""
    parts = list(turn.prompt)
    own = {part.digest for part in parts if isinstance(part, Image)}
    return parts + [image for image in _prompt_images(sample, turn) if image.digest not in own]


def _prompt_images(sample: Sample, turn: Turn) -> list[Image]:
    """Return the images of a request: its own, and those that its text mentions by number."""
    images = [part for part in turn.prompt if isinstance(part, Image)]
    mentioned = [number for number in find_mentions(turn.prompt_text) if 1 <= number <= len(sample.images)]
    images += [replace(sample.images[number - 1], label=number) for number in dict.fromkeys(mentioned)]
    return images


def _numbered(sample: Sample, images: Sequence[Image]) -> list[Image]:
    """Return images with their numbers in the dialogue, where they have any."""
    numbers = {image.digest: number for number, image in enumerate(sample.images, start=1)}
    return [replace(image, label=numbers.get(image.digest)) for image in images]


def _answers(sample: Sample, turn: Turn, data_format: DataFormat) -> list[tuple[str, tuple[Part, ...]]]:
    """Return what stands beside each other: the reference, or the outputs that are compared."""
    answers: list[tuple[str, tuple[Part, ...]]] = []
    if turn.gold:
        answers += data_format.presentation.side_by_side(turn.gold)
    if turn.reference:
        parts = [replace(part, label=turn.image_number) if isinstance(part, Image) else part for part in turn.reference]
        answers.append(("reference", tuple(parts)))
    return answers


def build_problems_page(index: RecordIndex, source: str) -> str:
    """Return the problems of the dataset's files that have been found so far."""
    problems = index.problems
    count = f"{_count(len(problems), 'problem')} in the records read so far"
    if len(problems) > MAX_PROBLEMS:
        count += f"; the first {_thousands(MAX_PROBLEMS)} are listed"
    items = [_render_problem(problem) for problem in problems[:MAX_PROBLEMS]]
    body = tag("main", tag("h1", "Problems"), tag("p", count, class_="soft"), tag("ul", items, class_="hits"))
    return build_page("weft: problems", _header(index, "Problems", source), body)


def _render_problem(problem: Problem) -> Html:
    return tag("li", tag("b", problem.severity), " ", inline_text(str(problem)))


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{_thousands(number)} {noun}s"


def _thousands(number: int) -> str:
    return f"{number:,}"
