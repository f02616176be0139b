"""The pages that an annotator sees: one question at a time, with its form next to it.

Nothing on them says which model, judge or run it is. Texts of datasets and models are escaped; images are addressed by
their digests."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.judge_eval.annotation.form import AnnotationForm, Field, form_value, format_value
from weft.judge_eval.annotation.study import AnnotationItem
from weft.report.html import Html, build_page, join, tag, text_block
from weft.types import Image, Message, Text

TINY_IMAGE = 200  # pixels: images up to this side are enlarged without blur
MAX_SHORT_OPTION = 6  # characters
ImageHref = Callable[[Image], str | None]
KEYS: tuple[tuple[str, str], ...] = (
    ("0 to 9", "the score of the field; the first, second, ... choice"),
    ("x", "a score of 10"),
    (".", "half a point more"),
    ("y  n", "yes, no"),
    ("↑ ↓  Tab", "the previous field, the next field"),
    ("← →", "one choice to the left, to the right"),
    ("w", "write a reason"),
    ("p", "the images, large; ← → go through them, Esc closes"),
    ("Enter", "save and continue (Shift+Enter: a new line in a text)"),
    ("u  Backspace", "back to the previous question; its answer can be changed"),
    ("?", "these keys"),
)


class PagePosition:
    """Where an annotator is in a study."""

    def __init__(self, address: str, number: int, total: int, done: int) -> None:
        self.address = address  # of the annotator's pages; forms are sent there
        self.number = number  # of the question, from 1
        self.total = total
        self.done = done  # questions answered

    @property
    def back(self) -> str | None:
        """The address of the previous question."""
        if self.number > 1:
            return f"{self.address}?at={self.number - 1}"
        return None


def question_page(
    item: AnnotationItem,
    position: PagePosition,
    href: ImageHref,
    answer: Mapping[str, Any],
    sent: Mapping[str, str],
    problem: str = "",
) -> str:
    """The page of one question. `answer` is what was saved before; `sent` is what the browser sent if it could not be
    saved, and `problem` says why."""
    question = tag(
        "article",
        [_render_message(message, href) for message in item.question.messages],
        class_="asked-of",
        aria_label="the question",
    )
    form = _render_form(item, position, answer, sent, problem)
    title = f"{position.number} of {position.total}"
    return _build_page(title, position, tag("main", question, form, class_="rate"), keys=True)


def _render_form(
    item: AnnotationItem, position: PagePosition, answer: Mapping[str, Any], sent: Mapping[str, str], problem: str
) -> Html:
    back = tag("a", "Back", href=position.back, class_="back", data_back=True) if position.back else None
    return tag(
        "form",
        tag("p", item.line, class_="line") if item.line else None,
        tag("p", problem, class_="warning", role="alert") if problem else None,
        tag("p", "Where the text asks for JSON, fill this in instead.", class_="soft small"),
        tag("div", _render_groups(item.form, answer, sent), class_="fields"),
        tag("input", type="hidden", name="item", value=item.id),
        tag("input", type="hidden", name="shown", value=f"{time.time():.3f}"),
        tag("div", back, tag("button", "Save and continue", type="submit", class_="save"), class_="go"),
        method="post",
        action=position.address,
        class_="rating",
        autocomplete="off",
    )


def done_page(position: PagePosition) -> str:
    """The page after the last question."""
    last = f"{position.address}?at={position.total}"
    body = tag(
        "main",
        tag("h1", "Thank you"),
        tag("p", f"All {position.total} questions are answered, and every answer is saved."),
        tag("p", tag("a", "Back to the last question", href=last, data_back=True)),
    )
    return _build_page("done", position, body)


def _build_page(title: str, position: PagePosition, body: Html, *, keys: bool = False) -> str:
    keys_button: Html | None = None
    keys_dialog: Html | None = None
    image_dialog: Html | None = None
    if keys:
        keys_button = tag("button", "Keys", type="button", id="show-keys", aria_haspopup="dialog")
        keys_dialog = _render_keys()
        image_dialog = tag("dialog", id="large", aria_label="the image, large")
    header = tag(
        "header",
        tag("b", "weft"),
        tag("span", title, class_="count"),
        tag("progress", value=position.done, max=position.total, aria_label="questions answered"),
        keys_button,
        class_="top rating-top",
    )
    return build_page(
        f"weft: {title}",
        header,
        body,
        keys_dialog,
        image_dialog,
        script="rate.js",
        kind="rates",
        forms=True,
        style="style.css rate.css",
        referrer="same-origin",
    )


def _render_keys() -> Html:
    entries: list[Html] = []
    for names, meaning in KEYS:
        keys = [join(tag("kbd", key), " ") for key in names.split("  ")]
        entries.append(join(tag("dt", keys), tag("dd", meaning)))
    close = tag("button", "Close", type="button", data_close=True)
    return tag("dialog", tag("h2", "Keys"), tag("dl", entries), close, id="keys", aria_label="keys")


def _render_message(message: Message, href: ImageHref) -> Html:
    blocks: list[Html] = []
    for part in message.parts:
        if isinstance(part, Text):
            if part.text.strip():
                blocks.append(text_block(part.text.strip("\n")))
        elif isinstance(part, Image):
            blocks.append(_render_image(part, href))
    return tag("section", blocks)


def _render_image(image: Image, href: ImageHref) -> Html:
    address = href(image)
    if address is None:
        return tag("p", "[this image is no longer in the store]", class_="warning")
    css = "tiny" if max(image.width, image.height) <= TINY_IMAGE else None
    element = tag(
        "img", src=address, alt="an image of the question", width=image.width, height=image.height, class_=css
    )
    return tag("a", element, href=address, class_="picture", data_large=True, title="enlarge")


def _render_groups(form: AnnotationForm, answer: Mapping[str, Any], sent: Mapping[str, str]) -> list[Html]:
    """The fields of a form; neighbours of the same group are under one heading."""
    groups: list[tuple[str, list[Html]]] = []
    for index, field in enumerate(form.fields):
        rendered = _render_field(index, field, answer, sent)
        if groups and groups[-1][0] == field.group:
            groups[-1][1].append(rendered)
        else:
            groups.append((field.group, [rendered]))
    sections: list[Html] = []
    for heading, fields in groups:
        if heading:
            sections.append(tag("section", tag("h3", heading, dir="auto"), fields, class_="group"))
        else:
            sections.append(join(fields))
    return sections


def _render_field(index: int, field: Field, answer: Mapping[str, Any], sent: Mapping[str, str]) -> Html:
    if sent:
        value = sent.get(f"f{index}", "")
        half = bool(sent.get(f"h{index}"))
    else:
        value, half = form_value(field, answer)
    if field.is_text:
        return _render_text(index, field, value)
    if field.kind == "number":
        return _render_number(index, field, value)
    options = [
        _render_option(index, number, option, field, checked=value == str(number))
        for number, option in enumerate(field.options)
    ]
    if field.has_halves:
        options.append(_render_half(index, checked=half))
    return tag(
        "fieldset",
        tag("legend", field.label),
        tag("div", options, class_=f"options {_option_layout(field)}"),
        class_="field",
        data_kind=field.kind,
    )


def _render_number(index: int, field: Field, value: str) -> Html:
    box = tag(
        "input",
        type="number",
        name=f"f{index}",
        value=value,
        min=_format_bound(field.low),
        max=_format_bound(field.high),
        step=1 if field.is_integer else "any",
        inputmode="numeric" if field.is_integer else "decimal",
        required=field.required,
    )
    return tag("fieldset", tag("legend", field.label), box, class_="field", data_kind=field.kind)


def _render_half(index: int, *, checked: bool) -> Html:
    box = tag(
        "input",
        type="checkbox",
        name=f"h{index}",
        value="1",
        checked=checked,
        tabindex="-1",
        aria_label="half a point more",
    )
    return tag("label", box, tag("span", "+½"), class_="option half")


def _render_option(index: int, number: int, value: Any, field: Field, *, checked: bool) -> Html:
    text = format_value(value)
    box = tag(
        "input", type="radio", name=f"f{index}", value=number, checked=checked, required=field.required, data_value=text
    )
    return tag("label", box, tag("span", text, dir="auto"), class_="option")


def _option_layout(field: Field) -> str:
    """Short options are in a grid, long ones in lines."""
    if field.kind == "choice" and any(len(str(option)) > MAX_SHORT_OPTION for option in field.options):
        return "long"
    return "short"


def _render_text(index: int, field: Field, value: str) -> Html:
    """A text box; within a group it is folded until there is something in it."""
    box = tag(
        "textarea", value, name=f"f{index}", rows=2, maxlength=4000, placeholder="optional", aria_label=field.label
    )
    if not field.group:
        return tag("label", tag("span", field.label, class_="label"), box, class_="words-field")
    return tag("details", tag("summary", field.label, tabindex="-1"), box, class_="why", open=bool(value))


def _format_bound(number: float | None) -> str | None:
    if number is None:
        return None
    return f"{number:g}"


def images_of(items: Sequence[AnnotationItem]) -> list[Image]:
    images: list[Image] = []
    for item in items:
        images += item.images
    return images
