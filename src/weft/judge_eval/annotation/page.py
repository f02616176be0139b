"""The pages that a rater sees: one question at a time, with its form beside it. Nothing on them says which model, judge
or run it is. Texts of datasets and models are text; pictures are called by their digests."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.judge_eval.annotation.form import AnnotationForm, Field, chosen
from weft.judge_eval.annotation.study import AnnotationItem
from weft.report.html import Html, build_page, join, tag, text_block
from weft.types import Image, Message, Text

TINY = 200  # pictures up to this side are enlarged without blur
Href = Callable[[Image], str | None]
KEYS: tuple[tuple[str, str], ...] = (
    ("0 to 9", "the score of the field; the first, second, ... choice"),
    ("x", "a score of 10"),
    (".", "half a point more"),
    ("y  n", "yes, no"),
    ("↑ ↓  Tab", "the field before, the field after"),
    ("← →", "one choice to the left, to the right"),
    ("w", "write why"),
    ("p", "the pictures, large; ← → go through them, Esc closes"),
    ("Enter", "save and go on (Shift+Enter: a new line in a text)"),
    ("u  Backspace", "back to the question before; what was chosen may be changed"),
    ("?", "these keys"),
)


class PagePosition:
    """Where a rater is: the how-manieth of how many, what leads back, and where the form goes."""

    def __init__(self, address: str, at: int, of: int, done: int) -> None:
        self.address = address
        self.at = at
        self.of = of
        self.done = done

    @property
    def back(self) -> str | None:
        if self.at > 1:
            return f"{self.address}?at={self.at - 1}"
        return None


def question_page(
    item: AnnotationItem,
    place: PagePosition,
    href: Href,
    answer: Mapping[str, Any],
    given: Mapping[str, str],
    problem: str = "",
) -> str:
    """`answer` is what was saved before; `given` what was sent, where it could not be saved."""
    asked = tag(
        "article",
        [_message(message, href) for message in item.question.messages],
        class_="asked-of",
        aria_label="the question",
    )
    side = tag(
        "form",
        tag("p", item.line, class_="line") if item.line else None,
        tag("p", problem, class_="warning", role="alert") if problem else None,
        tag("p", "Where the text asks for JSON, fill this in instead.", class_="soft small"),
        tag("div", _groups(item.form, answer, given), class_="fields"),
        tag("input", type="hidden", name="item", value=item.id),
        tag("input", type="hidden", name="shown", value=f"{time.time():.3f}"),
        tag(
            "div",
            tag("a", "Back", href=place.back, class_="back", data_back=True) if place.back else None,
            tag("button", "Save and go on", type="submit", class_="save"),
            class_="go",
        ),
        method="post",
        action=place.address,
        class_="rating",
        autocomplete="off",
    )
    return _page(f"{place.at} of {place.of}", place, tag("main", asked, side, class_="rate"), keys=True)


def done_page(place: PagePosition) -> str:
    back = tag("p", tag("a", "Back to the last question", href=f"{place.address}?at={place.of}", data_back=True))
    thanks = tag(
        "main",
        tag("h1", "Thank you"),
        tag("p", f"All {place.of} questions are answered, and every answer is saved."),
        back,
    )
    return _page("done", place, thanks)


def _page(title: str, place: PagePosition, body: Html, *, keys: bool = False) -> str:
    bar = tag(
        "header",
        tag("b", "weft"),
        tag("span", title, class_="count"),
        tag("progress", value=place.done, max=place.of, aria_label="questions answered"),
        tag("button", "Keys", type="button", id="show-keys", aria_haspopup="dialog") if keys else None,
        class_="top rating-top",
    )
    listed = [
        join(tag("dt", [join(tag("kbd", key), " ") for key in name.split("  ")]), tag("dd", what))
        for name, what in KEYS
    ]
    closing = tag("button", "Close", type="button", data_close=True)
    if keys:
        told = tag("dialog", tag("h2", "Keys"), tag("dl", listed), closing, id="keys", aria_label="keys")
    else:
        told = None
    if keys:
        large = tag("dialog", id="large", aria_label="the picture, large")
    else:
        large = None
    script = "rate.js"
    style = "style.css rate.css"
    return build_page(
        f"weft: {title}",
        bar,
        body,
        told,
        large,
        script=script,
        kind="rates",
        forms=True,
        style=style,
        referrer="same-origin",
    )


def _message(message: Message, href: Href) -> Html:
    made: list[Html] = []
    for part in message.parts:
        if isinstance(part, Text):
            if part.text.strip():
                made.append(text_block(part.text.strip("\n")))
        elif isinstance(part, Image):
            made.append(_picture(part, href))
    return tag("section", made)


def _picture(image: Image, href: Href) -> Html:
    place = href(image)
    if place is None:
        return tag("p", "[a picture that is not in the store any more]", class_="warning")
    if max(image.width, image.height) <= TINY:
        tiny = "tiny"
    else:
        tiny = None
    shown = tag("img", src=place, alt="a picture of the question", width=image.width, height=image.height, class_=tiny)
    return tag("a", shown, href=place, class_="picture", data_large=True, title="enlarge")


def _groups(form: AnnotationForm, answer: Mapping[str, Any], given: Mapping[str, str]) -> list[Html]:
    made: list[Html] = []
    at = 0
    while at < len(form.fields):
        group = form.fields[at].group
        some = [at]
        while some[-1] + 1 < len(form.fields) and form.fields[some[-1] + 1].group == group:
            some.append(some[-1] + 1)
        inside = [_field(number, form.fields[number], answer, given, folded=bool(group)) for number in some]
        made.append(tag("section", tag("h3", group, dir="auto"), inside, class_="group") if group else join(inside))
        at = some[-1] + 1
    return made


def _field(at: int, field: Field, answer: Mapping[str, Any], given: Mapping[str, str], *, folded: bool) -> Html:
    value, half = (given.get(f"f{at}", ""), bool(given.get(f"h{at}"))) if given else chosen(field, answer)
    if field.is_words:
        return _words(at, field, value, folded=folded)
    if field.kind == "number":
        bounds = {"min": _plain(field.low), "max": _plain(field.high), "step": 1 if field.whole else "any"}
        how = {"inputmode": "numeric" if field.whole else "decimal", "required": field.needed}
        typed = tag("input", type="number", name=f"f{at}", value=value, **bounds, **how)
        return tag("fieldset", tag("legend", field.label), typed, class_="field", data_kind=field.kind)
    options = [
        _option(at, number, one, field, checked=value == str(number)) for number, one in enumerate(field.options)
    ]
    if field.halves:
        box = tag(
            "input",
            type="checkbox",
            name=f"h{at}",
            value="1",
            checked=half,
            tabindex="-1",
            aria_label="half a point more",
        )
        options.append(tag("label", box, tag("span", "+½"), class_="option half"))
    return tag(
        "fieldset",
        tag("legend", field.label),
        tag("div", options, class_=f"options {_shape(field)}"),
        class_="field",
        data_kind=field.kind,
    )


def _option(at: int, number: int, value: Any, field: Field, *, checked: bool) -> Html:
    if isinstance(value, bool):
        told = {True: "yes", False: "no"}[value]
    else:
        if isinstance(value, (int, float)):
            told = f"{value:g}"
        else:
            told = str(value)
    box = tag(
        "input", type="radio", name=f"f{at}", value=number, checked=checked, required=field.needed, data_value=told
    )
    return tag("label", box, tag("span", told, dir="auto"), class_="option")


def _shape(field: Field) -> str:
    """Short ones stand in a grid, long ones in lines."""
    long = field.kind == "choice" and any(len(str(one)) > 6 for one in field.options)
    if long:
        return "long"
    return "short"


def _words(at: int, field: Field, value: str, *, folded: bool) -> Html:
    box = tag(
        "textarea", value, name=f"f{at}", rows=2, maxlength=4000, placeholder="if you like", aria_label=field.label
    )
    if not folded:
        return tag("label", tag("span", field.label, class_="label"), box, class_="words-field")
    return tag("details", tag("summary", field.label, tabindex="-1"), box, class_="why", open=bool(value))


def _plain(number: float | None) -> str | None:
    if number is None:
        return None
    return f"{number:g}"


def pictures_of(items: Sequence[AnnotationItem]) -> list[Image]:
    return [image for item in items for image in item.images]
