"""weft data"""

from typing import Annotated

import typer

from weft.cli import options as o
from weft.cli.terminal import say

app = typer.Typer(no_args_is_help=True, help="Make and check datasets.", rich_markup_mode=None)


@app.callback()
def data() -> None:
    """Make and check datasets."""


@app.command("make")
def make_data(
    name: Annotated[
        str,
        typer.Argument(
            help="tabletop-weave, tabletop-weave-memory, tabletop-weave-single, tabletop-imug, tabletop-rover, tabletop-planviz or "
            "tabletop-weaver."
        ),
    ],
    out: Annotated[o.Path, typer.Option(help="The folder to write to.")],
    samples: Annotated[int, typer.Option(min=1, help="How many dialogues.")] = 100,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 0,
    side: Annotated[
        int, typer.Option(help="Pixels: 64, or a multiple of it, drawn larger and with a photograph's noise.")
    ] = 64,
) -> None:
    """Write tabletop dialogues in a benchmark's official format, with the exact truth beside them.

    Examples:

      weft data make tabletop-weave --samples 100 --seed 0 --out tables

      weft run weave --data tables --model tabletop/oracle --judge tabletop/exact

      weft data make tabletop-weave --side 512 --out large

      weft data make tabletop-imug --samples 200 --seed 0 --out chats

      weft data make tabletop-rover --samples 300 --seed 0 --out rover

      weft data make tabletop-planviz --samples 120 --seed 0 --out plans

      weft data make tabletop-weaver --samples 120 --seed 0 --out documents
    """
    from weft_tabletop.make import make

    say(make(name, out, samples=samples, seed=seed, side=side))


@app.command()
def new(
    benchmark: Annotated[str, typer.Argument(help="Whose data it is to hold: planviz or weaverbench.")],
    folder: Annotated[o.Path, typer.Argument(help="The folder to make.")],
) -> None:
    """Make a folder to fill with tasks of your own: an example of each kind, and a page that says how.

    Examples:

      weft data new planviz mytasks

      weft data check planviz mytasks
    """
    from weft import benchmarks
    from weft.errors import UserError
    from weft.store.blobs import write_folder

    found = benchmarks.load_benchmark(benchmark)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is there already and not empty; name another folder")
    if found.preparation.template is None:
        raise UserError(f"{found.name} has no template for data of one's own")
    write_folder(folder, found.preparation.template)
    say(f"{folder}: {folder / 'README.md'} says how to fill it; `weft data check {benchmark} {folder}` what is wrong")


@app.command()
def wordings(
    run: Annotated[str, typer.Argument(help="A run of the prompt-style study; `last` is the latest.")],
    out: Annotated[o.Path, typer.Option(help="The file to write, for --reword.")],
    home: o.Home = o.Path(".weft"),
) -> None:
    """Write the wordings of a run to a file: to read them, mend them, publish them, or give them to other models
    elsewhere.

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
    said = [turn for turn in turns if turn.groups.get("of", turn.sample) != turn.sample]
    if not said:
        raise UserError(f"{run} has no wordings: it was made without --styles, or none could be used")
    if out.exists():
        raise UserError(f"{out} is there already; name another file")
    lines = [
        {
            "task": turn.groups["of"],
            "style": turn.groups["style"],
            "prompt": "".join(p.text for p in read_dataset_turn(turn).prompt if isinstance(p, Text)),
        }
        for turn in said
    ]
    out.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    say(f"{out}: {len(lines)} wordings of {len({line['task'] for line in lines})} tasks")


@app.command()
def get(
    name: Annotated[
        str, typer.Argument(help="weave, rover, rover-ig, rover-tg, or any dataset of the hub as OWNER/NAME.")
    ],
    out: Annotated[o.Path | None, typer.Option(help="The folder to put it in; by default one of that name.")] = None,
) -> None:
    """Fetch a dataset from the Hugging Face hub (extra `hub`), and unpack its archives. What is there already is not
    fetched again.

    Offline it says what to download, and where to put it.

    Examples:

      weft data get weave --out data/weave

      weft data get rover --out rover

      weft data get OWNER/NAME --out imug && weft data check imug imug
    """
    from weft.benchmarks.download import download_dataset as fetched

    say(fetched(name, out))


@app.command()
def check(
    benchmark: Annotated[str, typer.Argument(help="Which benchmark's format it is in.")],
    folder: Annotated[o.Path, typer.Argument(help="The dataset's folder.")],
) -> None:
    """Every problem of a dataset, with file, record and field; then the ground truth through the whole path.

    Exits with 2 if a record cannot be used.

    Examples:

      weft data check weave DATA
    """
    import tempfile
    from collections import Counter

    from weft import api, benchmarks
    from weft.workspace import open_blobs

    found = benchmarks.load_benchmark(benchmark)
    with tempfile.TemporaryDirectory(prefix="weft-") as home:
        dataset = found.load(folder, open_blobs(o.Path(home))).load_all()
        for problem in dataset.problems:
            say(f"{problem.severity}: {problem}")
        turns = [turn for sample in dataset.samples for turn in sample.turns]
        for axis in found.axes:
            counts = Counter(sample.groups[axis] for sample in dataset.samples if axis in sample.groups)
            if 1 < len(counts) <= 12:
                say(f"by {axis}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
        for line in found.preparation.describe_data(dataset):
            say(line)
        kinds = ", ".join(
            f"{sum(turn.modality == kind for turn in turns)} {kind}"
            for kind in sorted({turn.modality for turn in turns})
        )
        say(f"{len(dataset.samples)} of {dataset.records} records can be used: {len(turns)} turns ({kinds or 'none'})")
        if dataset.samples:
            run = api.validate(benchmark, folder, home=home)
            whole = run.verdicts and all(
                verdict.value is not None and verdict.by != "failure" for verdict in run.verdicts
            )
            say(
                f"ground truth through the whole path: {len(run.verdicts)} verdicts, {'all complete' if whole else 'NOT complete'}"
            )
            without = sum("stand-in" in turn.reply.notes for turn in run.turns)
            if without:
                say(f"{without} turns have no true reply in the data, which is no fault: a stand-in took its place")
            made_up = {turn.sample for turn in run.turns if "stand-in" in turn.reply.notes}
            for verdict in run.verdicts:
                if verdict.value == 0 and verdict.by == "rule" and verdict.sample not in made_up:
                    say(f"warning: the true reply to {verdict.sample} scores 0 on {verdict.metric}: {verdict.reason}")
            if not whole:
                say("\n".join(f"  {line}" for line in run.summary().lines[3:]))
                raise typer.Exit(1)
    if any(problem.severity == "error" for problem in dataset.problems):
        raise typer.Exit(2)
