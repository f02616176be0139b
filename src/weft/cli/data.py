"""weft data"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.data_figure import data_figure
from weft.cli.data_stats import stats
from weft.cli.data_view import view
from weft.cli.help import HelpGroup
from weft.cli.options import DEFAULT_HOME, HomeOption
from weft.cli.terminal import say

if TYPE_CHECKING:
    from weft.benchmarks.data_format import DataFormat
    from weft.results.run import Run
    from weft.types import LoadedDataset

app = typer.Typer(cls=HelpGroup, no_args_is_help=True, rich_markup_mode=None)
MAX_GROUPS = 12  # of an axis, that are counted one by one
STAND_IN = "stand-in"  # the note of a reply to a turn that has no reference
app.command("stats")(stats)
app.command("view")(view)
app.command("figure")(data_figure)


@app.callback()
def data() -> None:
    """Generate, download, check and look at datasets.

    Examples:

      weft data get weave --out data/weave

      weft data check weave data/weave

      weft data stats weave data/weave

      weft data view weave data/weave --open

      weft data figure weave data/weave 12
    """


@app.command("make")
def make_data(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="tabletop-weave, tabletop-weave-memory, tabletop-weave-single, tabletop-imug, tabletop-rover, "
            "tabletop-planviz, tabletop-weaver, tabletop-gedit, "
            "tabletop-risebench, tabletop-imgedit, tabletop-kris, tabletop-geneval, tabletop-geneval2, tabletop-mmvet, "
            "or, for models of four cells, tabletop-weave-micro or tabletop-weaver-micro.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="PATH", help="The folder to write to.")],
    samples: Annotated[int, typer.Option(min=1, metavar="N", help="How many dialogues.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same bytes.")] = 0,
    side: Annotated[
        int,
        typer.Option(metavar="PIXELS", help="64, or a multiple of it, drawn larger and with a photograph's noise."),
    ] = 64,
) -> None:
    """Generate tabletop dialogues in a benchmark's official format.

    The exact references are part of the data.

    Examples:

      weft data make tabletop-weave --samples 100 --seed 0 --out tables

      weft run weave --data tables --model tabletop/oracle --judge tabletop/exact

      weft data make tabletop-weave --side 512 --out large

      weft data make tabletop-imug --samples 200 --seed 0 --out chats

      weft data make tabletop-rover --samples 300 --seed 0 --out rover

      weft data make tabletop-planviz --samples 120 --seed 0 --out plans

      weft data make tabletop-weaver --samples 120 --seed 0 --out documents

      weft data make tabletop-gedit --samples 110 --seed 0 --out edits
    """
    from weft_tabletop.make import make

    say(make(name, out, samples=samples, seed=seed, side=side))


@app.command()
def new(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="Which benchmark's format: planviz or weaverbench.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to create.")],
) -> None:
    """Create a folder for tasks of your own, with examples and a guide.

    Examples:

      weft data new planviz mytasks

      weft data check planviz mytasks
    """
    from weft.benchmarks import load_benchmark
    from weft.errors import UserError
    from weft.store.blobs import write_folder

    loaded = load_benchmark(benchmark)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already and is not empty; name another folder")
    if loaded.preparation.template is None:
        raise UserError(f"{loaded.name} has no template for your own data")
    write_folder(folder, loaded.preparation.template)
    say(f"{folder}: {folder / 'README.md'} says how to fill it; `weft data check {benchmark} {folder}` checks it")


@app.command()
def wordings(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run of the prompt-style study; `last` is the latest.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write, for --reword.")],
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write the wordings of a run to a file, to edit or to reuse them.

    Examples:

      weft data wordings last --out wordings.jsonl

      weft run planviz --data DATA --model MODEL --judge JUDGE --reword wordings.jsonl
    """
    import json

    from weft.errors import UserError
    from weft.results.run import load_run, read_dataset_turn
    from weft.types import Text
    from weft.workspace import open_journal

    journal = open_journal(home)
    try:
        turns = load_run(journal, run).turns
    finally:
        journal.close()
    reworded = [turn for turn in turns if turn.groups.get("of", turn.sample) != turn.sample]
    if not reworded:
        raise UserError(f"{run} has no wordings: it was made without --styles, or none could be used")
    if out.exists():
        raise UserError(f"{out} exists already; name another file")
    lines: list[str] = []
    tasks: set[str] = set()
    for turn in reworded:
        prompt = "".join(part.text for part in read_dataset_turn(turn).prompt if isinstance(part, Text))
        record = {"task": turn.groups["of"], "style": turn.groups["style"], "prompt": prompt}
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
        tasks.add(turn.groups["of"])
    out.write_text("".join(lines), encoding="utf-8")
    say(f"{out}: {len(lines)} wordings of {len(tasks)} tasks")


@app.command()
def get(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="weave, weave-100k, rover, rover-ig, rover-tg, or any dataset of the hub as OWNER/NAME.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The folder to write to. Default: one of that name.")
    ] = None,
) -> None:
    """Download a dataset from the Hugging Face hub (extra `hub`).

    Its archives are unpacked. Files that are there already are not downloaded again. Offline, the command says what to
    download and where to put it. weave-100k comes file by file: each archive is unpacked, then removed.

    Examples:

      weft data get weave --out data/weave

      weft data get rover --out rover

      weft data get OWNER/NAME --out imug && weft data check imug imug

      weft data get weave-100k --out data/weave-100k
    """
    from weft.benchmarks.download import download_dataset
    from weft.benchmarks.download_stream import STREAMED_DATASETS, stream_dataset

    if name not in STREAMED_DATASETS:
        say(download_dataset(name, out))
        return
    folder, left = stream_dataset(
        name, out, lambda number, count, file: say(f"{number} of {count}: {file}", flush=True)
    )
    for file in left:
        say(f"warning: {folder / file} is an archive that weft does not unpack: unpack it by hand, in its folder")
    say(folder)


@app.command()
def check(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="Which benchmark's format it is in.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The dataset's folder.")],
) -> None:
    """List every problem of a dataset, with file, record and field, and what it has more than once.

    Then check it end to end with its reference answers; training data are only read. Exit code: 2 if a record cannot be
    used, 1 if the end-to-end check is not complete.

    Examples:

      weft data check weave DATA

      weft data check weave-100k DATA
    """
    import tempfile

    from weft import api
    from weft.benchmarks.data_format import load_format
    from weft.datasets.image_hashes import HashingBlobs
    from weft.datasets.repeat_tables import describe_repeats
    from weft.datasets.repeats import find_repeats
    from weft.workspace import open_blobs

    data_format = load_format(benchmark)
    with tempfile.TemporaryDirectory(prefix="weft-") as home:
        blobs = HashingBlobs(open_blobs(Path(home)).root)
        dataset = data_format.load(folder, blobs).load_all()
        for problem in dataset.problems:
            say(f"{problem.severity}: {problem}")
        axes = data_format.statistics.composition or data_format.axes
        for line in describe_repeats(find_repeats(dataset.samples, axes, blobs.hashes)):
            say(f"warning: {line}")
        _print_contents(data_format, dataset)
        if data_format.benchmark is None:
            say(f"{data_format.title} is training data: there is no protocol to check end to end")
        elif dataset.samples:
            run = api.validate(benchmark, folder, home=home)
            _print_validation(run)
    if any(problem.severity == "error" for problem in dataset.problems):
        raise typer.Exit(2)


def _print_contents(data_format: "DataFormat", dataset: "LoadedDataset") -> None:
    """Print how many samples each group has, and how many turns there are of each modality."""
    from collections import Counter

    for axis in data_format.axes:
        groups = Counter(sample.groups[axis] for sample in dataset.samples if axis in sample.groups)
        if 1 < len(groups) <= MAX_GROUPS:
            counts = [f"{count} {name}" for name, count in groups.items()]
            say(f"by {axis}: {', '.join(counts)}")
    if data_format.benchmark is not None:
        for line in data_format.benchmark.preparation.describe_data(dataset):
            say(line)
    modalities: Counter[str] = Counter()
    for sample in dataset.samples:
        modalities.update(turn.modality for turn in sample.turns)
    kinds = [f"{count} {modality}" for modality, count in sorted(modalities.items())]
    say(
        f"{len(dataset.samples)} of {dataset.records} records can be used: {modalities.total()} turns "
        f"({', '.join(kinds) or 'none'})"
    )


def _print_validation(run: "Run") -> None:
    """Print what the end-to-end check with reference answers found. Ends the command with 1 if it is not complete."""
    complete = bool(run.verdicts)
    for verdict in run.verdicts:
        if verdict.value is None or verdict.by == "failure":
            complete = False
    state = "NOT complete"
    if complete:
        state = "all complete"
    say(f"end-to-end check with reference answers: {len(run.verdicts)} verdicts, {state}")
    without_reference = [turn for turn in run.turns if STAND_IN in turn.reply.notes]
    if without_reference:
        say(f"{len(without_reference)} turns have no reference in the data, which is no error: a stand-in is used")
    samples = {turn.sample for turn in without_reference}
    for verdict in run.verdicts:
        if verdict.value == 0 and verdict.by == "rule" and verdict.sample not in samples:
            say(f"warning: the reference of {verdict.sample} scores 0 on {verdict.metric}: {verdict.reason}")
    if not complete:
        for line in run.summary().lines[3:]:
            say(f"  {line}")
        raise typer.Exit(1)
