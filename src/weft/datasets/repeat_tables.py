"""What a dataset has more than once, as tables and as lines of warnings."""

from collections.abc import Iterator, Sequence

from weft.datasets.perceptual_hash import MAX_DISTANCE
from weft.datasets.repeats import RepeatedImage, RepeatedTask, Repeats
from weft.datasets.tables import count_cell
from weft.datasets.task_texts import GRAM, MIN_SIMILARITY
from weft.types import Cell, Row, Table

MAX_ROWS = 50  # repeated tasks, or images, of a table
MAX_WARNINGS = 10  # repeated tasks that a check lists
MAX_NAMED = 6  # dialogues or images that a line names
SAME = "same"
NEARLY = "nearly"


def build_repeat_tables(title: str, repeats: Repeats) -> Iterator[Table]:
    """Yield the number of repeats, and each of them."""
    cells = {
        "dialogues": count_cell(repeats.dialogues),
        "repeated tasks": count_cell(len(repeats.tasks)),
        "in dialogues": count_cell(sum(len(task.samples) for task in repeats.tasks)),
        "same words": count_cell(repeats.same_words),
        "image files": count_cell(repeats.images),
        "in several dialogues": count_cell(repeats.exact_images),
        "sets that look alike": count_cell(repeats.similar_images),
    }
    note = (
        f"A repeated task has the same words and input images, or nearly so: {MIN_SIMILARITY:.0%} of word {GRAM}-grams "
        f"in common, images of a group that differ in at most {MAX_DISTANCE} of 64 bits of a perceptual hash. Same "
        "words: dialogues whose words another has as well, with whatever images."
    )
    yield Table(f"{title}: repeats", tuple(cells), (Row("all", cells, kind="part"),), note, 0, "breakdown")
    if repeats.tasks:
        rows = [_describe_task(number, task) for number, task in enumerate(repeats.tasks[:MAX_ROWS], start=1)]
        yield _list_table(f"{title}: repeated tasks", rows, len(repeats.tasks))
    if repeats.repeated_images:
        images = sorted(repeats.repeated_images, key=lambda image: (not image.exact, -len(image.places)))
        rows = [_describe_image(number, image) for number, image in enumerate(images[:MAX_ROWS], start=1)]
        yield _list_table(f"{title}: repeated images", rows, len(images))


def _list_table(title: str, rows: Sequence[Row], count: int) -> Table:
    note = ""
    if count > len(rows):
        note = f"The first {len(rows)} of {count}."
    return Table(title, ("times", "how", "where"), tuple(rows), note, 0, "breakdown")


def _describe_task(number: int, task: RepeatedTask) -> Row:
    return _list_row(number, len(task.samples), exact=task.exact, names=task.samples)


def _describe_image(number: int, image: RepeatedImage) -> Row:
    return _list_row(number, len(image.places), exact=image.exact, names=image.places)


def _list_row(number: int, times: int, *, exact: bool, names: Sequence[str]) -> Row:
    how = SAME if exact else NEARLY
    cells = {"times": count_cell(times), "how": Cell(None, text=how), "where": Cell(None, text=_name_some(names))}
    return Row(f"{number}", cells, kind="part")


def _name_some(names: Sequence[str]) -> str:
    listed = ", ".join(names[:MAX_NAMED])
    if len(names) > MAX_NAMED:
        listed += f", and {len(names) - MAX_NAMED} more"
    return listed


def describe_repeats(repeats: Repeats) -> Iterator[str]:
    """Yield a line for each repeated task, and one for repeated images; nothing if there are none."""
    for task in repeats.tasks[:MAX_WARNINGS]:
        how = "the same task" if task.exact else "nearly the same task"
        yield f"{how} is there {len(task.samples)} times: {_name_some(task.samples)}"
    if len(repeats.tasks) > MAX_WARNINGS:
        yield f"{len(repeats.tasks) - MAX_WARNINGS} more tasks are repeated; `weft data stats` lists them"
    if repeats.repeated_images:
        yield (
            f"{repeats.exact_images} image files are in several dialogues, and {repeats.similar_images} sets of others "
            "look alike within a group; `weft data stats` lists them"
        )
