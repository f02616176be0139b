"""The statistics of a dataset as tables: sizes, composition, kinds of turns, modality sequences, histograms, words."""

from collections.abc import Iterator, Sequence

from weft.datasets.counts import DatasetCounts, GroupCounts, Path, name_length_bin
from weft.types import Cell, Row, Table

MIN_IMAGES = (4, 5, 6)  # of a dialogue, as the paper of WEAVE counts them
MAX_CROSSED_COLUMNS = 8
FREQUENT_WORDS = 30
PAPER = "paper"  # a column with what the paper counts
SIZE_COLUMNS = (
    *("dialogues", "turns", "turns / dialogue", "images", "images / dialogue", "most images"),
    *(f"≥{count} images" for count in MIN_IMAGES),
    *("question characters", "question words"),
)


def build_tables(counts: DatasetCounts) -> list[Table]:
    """Return the tables of a dataset. A table that would say nothing is left out."""
    tables = [_build_sizes(counts), _build_composition(counts), *_build_crossings(counts), _build_kinds(counts)]
    tables += [*_build_sequences(counts), *_build_histograms(counts)]
    if counts.question_lengths:
        tables.append(_build_lengths(counts))
    if counts.words.occurrences:
        tables.append(_build_words(counts))
    return tables


def count_cell(value: int) -> Cell:
    return Cell(value, count=True)


def _ratio_cell(value: float, of: int, digits: int = 2) -> Cell:
    if not of:
        return Cell(None)
    return Cell(value / of, digits=digits)


def _size_cells(group: GroupCounts) -> dict[str, Cell]:
    cells = {
        "dialogues": count_cell(group.dialogues),
        "turns": count_cell(group.turns),
        "turns / dialogue": _ratio_cell(group.turns, group.dialogues),
        "images": count_cell(group.images),
        "images / dialogue": _ratio_cell(group.images, group.dialogues),
        "most images": count_cell(group.most_images),
    }
    for count in MIN_IMAGES:
        cells[f"≥{count} images"] = count_cell(group.dialogues_from(count))
    cells["question characters"] = _ratio_cell(group.question_characters, group.turns)
    cells["question words"] = _ratio_cell(group.question_words, group.turns)
    return cells


def _build_sizes(counts: DatasetCounts) -> Table:
    rows = [_row((), _size_cells(counts.total))]
    rows += [_row(path, _size_cells(group)) for path, group in counts.groups.items() if len(path) == 1]
    for name, numbers in counts.statistics.published.items():
        cells = {column: Cell(number, count=float(number).is_integer(), digits=2) for column, number in numbers.items()}
        rows.append(Row(name, cells, kind="published"))
    note = (
        "Images of a dialogue: inputs and references, each once. Questions: the text of each turn's prompt, on average."
    )
    return Table(f"{counts.title}: sizes", SIZE_COLUMNS, tuple(rows), note, 2, "breakdown")


def _build_composition(counts: DatasetCounts) -> Table:
    """Return every group of the composition with its share of the dialogues."""
    published = counts.statistics.published_groups
    columns = ["dialogues", "share %", "turns", "turns / dialogue", "images", "images / dialogue"]
    if published:
        columns.insert(1, PAPER)
    rows: list[Row] = []
    for path in _ordered_paths(counts):
        group = counts.groups[path]
        sizes = _size_cells(group)
        cells = {column: sizes[column] for column in columns if column in sizes}
        cells["share %"] = _ratio_cell(100 * group.dialogues, counts.total.dialogues, 1)
        number = published.get(path)
        if number is not None:
            cells[PAPER] = count_cell(number)
        rows.append(_row(path, cells))
    missing = [" / ".join(path) for path in published if path not in counts.groups]
    note = ""
    if missing:
        note = f"In the paper and not here: {', '.join(missing)}."
    axes = ", ".join(counts.composition) or "group"
    return Table(f"{counts.title}: dialogues by {axes}", tuple(columns), tuple(rows), note, 2, "breakdown")


def _ordered_paths(counts: DatasetCounts) -> list[Path]:
    """Return the groups so that each is followed by those inside it, otherwise in the order of the dataset."""
    order = {path: place for place, path in enumerate(counts.groups)}

    def key(path: Path) -> list[int]:
        return [order[path[: depth + 1]] for depth in range(len(path))]

    return sorted(counts.groups, key=key)


def _build_crossings(counts: DatasetCounts) -> Iterator[Table]:
    """Yield two neighbouring axes as rows and columns, where groups of the second are in several of the first."""
    for depth in range(len(counts.composition) - 1):
        cells: dict[str, dict[str, int]] = {}
        columns: dict[str, None] = {}
        for path, group in counts.groups.items():
            if len(path) == depth + 2:
                row = cells.setdefault(path[depth], {})
                row[path[-1]] = row.get(path[-1], 0) + group.dialogues
                columns[path[-1]] = None
        is_crossed = sum(map(len, cells.values())) > len(columns)
        if not is_crossed or not 1 < len(columns) <= MAX_CROSSED_COLUMNS:
            continue
        rows: list[Row] = []
        for name, row in cells.items():
            numbers = {column: count_cell(row.get(column, 0)) for column in columns}
            rows.append(Row(name, {"all": count_cell(sum(row.values())), **numbers}, kind="part"))
        first, second = counts.composition[depth : depth + 2]
        title = f"{counts.title}: dialogues by {first} and {second}"
        yield Table(title, ("all", *columns), tuple(rows), "", 0, "breakdown")


def _build_kinds(counts: DatasetCounts) -> Table:
    kinds = list(counts.total.turn_kinds)
    further = list(counts.total.further)
    rows: list[Row] = []
    for path in _ordered_paths(counts):
        group = counts.groups[path]
        cells = {kind: count_cell(group.turn_kinds[kind]) for kind in kinds}
        cells |= {name: count_cell(group.further[name]) for name in further}
        rows.append(_row(path, cells))
    title = f"{counts.title}: kinds of turns"
    return Table(title, (*kinds, *further), tuple(rows), "", 0, "breakdown")


def _build_sequences(counts: DatasetCounts) -> Iterator[Table]:
    """Yield the sequences of modalities that a model is asked for; nothing where every dialogue has one turn."""
    if all("," not in sequence for _, sequence in counts.sequences):
        return
    totals: dict[Path, int] = {}
    for (path, _), count in counts.sequences.items():
        totals[path] = totals.get(path, 0) + count
    places = {path: place for place, path in enumerate(totals)}
    ordered = sorted(counts.sequences.items(), key=lambda item: (places[item[0][0]], -item[1], item[0][1]))
    rows: list[Row] = []
    for (path, sequence), count in ordered:
        cells = {
            "dialogues": count_cell(count),
            "turns": count_cell(sequence.count(",") + 1),
            "share %": _ratio_cell(100 * count, totals[path], 1),
        }
        rows.append(Row(f"{_label(path)} {sequence}", cells, kind="part"))
    note = "What is asked for in each turn: T a text, I an image, D a document of both. Shares are of the group."
    title = f"{counts.title}: modality sequences"
    yield Table(title, ("dialogues", "turns", "share %"), tuple(rows), note, 1, "breakdown")


def _build_histograms(counts: DatasetCounts) -> Iterator[Table]:
    for name, bins in counts.histograms.items():
        rows: list[Row] = []
        for label in sort_bins(list(bins)):
            cells = {
                "dialogues": count_cell(bins[label]),
                "share %": _ratio_cell(100 * bins[label], bins.total(), 1),
            }
            rows.append(Row(label, cells, kind="part"))
        if len(rows) > 1:
            yield Table(f"{counts.title}: {name}", ("dialogues", "share %"), tuple(rows), "", 1, "breakdown")


def _build_lengths(counts: DatasetCounts) -> Table:
    rows: list[Row] = []
    for start, count in sorted(counts.question_lengths.items()):
        cells = {"questions": count_cell(count), "share %": _ratio_cell(100 * count, counts.total.turns, 1)}
        rows.append(Row(name_length_bin(start), cells, kind="part"))
    title = f"{counts.title}: question lengths"
    return Table(title, ("questions", "share %"), tuple(rows), "In characters.", 1, "breakdown")


def sort_bins(labels: Sequence[str]) -> list[str]:
    """Return the labels of bins, numbers first and in their order."""
    return sorted(labels, key=lambda label: (not label.isdecimal(), int(label) if label.isdecimal() else 0, label))


def _build_words(counts: DatasetCounts) -> Table:
    rows: list[Row] = []
    for word, occurrences, dialogues in counts.words.most_common(FREQUENT_WORDS):
        cells = {"occurrences": count_cell(occurrences), "dialogues": count_cell(dialogues)}
        rows.append(Row(word, cells, kind="part"))
    note = "Words of the questions, without function words."
    return Table(f"{counts.title}: frequent words", ("occurrences", "dialogues"), tuple(rows), note, 0, "breakdown")


def _label(path: Path) -> str:
    return " / ".join(path) or "all"


def _row(path: Path, cells: dict[str, Cell]) -> Row:
    return Row(_label(path), cells, kind="part")
