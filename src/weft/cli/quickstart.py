"""`weft run` without a benchmark: a whole evaluation on drawn tabletops, in a minute, without a key or a network."""

import itertools
from pathlib import Path

from weft import api
from weft.cli.execute import run_quietly
from weft.cli.screen import Screen
from weft.cli.tables import print_table
from weft.evaluation.config import RunConfig
from weft.evaluation.session import open_run
from weft.results.run import Run, build_tables, name_runs
from weft_tabletop.make import make

SAMPLES = 100
SEED = 0
UPPER_BOUND = "tabletop/oracle"
MODEL = "tabletop/tiny"
LOWER_BOUND = "copy"
OPTIONS = {"history": "dialogue", "placement": "inline"}
TABLES = 5  # of the report, that are printed
REPORTS = Path("reports")


def run_quickstart(home: Path) -> None:
    """Evaluate the tiny model, its upper and its lower bound; print the tables and write the report."""
    console = Screen(stderr=True, soft_wrap=True)
    data = home / f"tabletop-weave-{SAMPLES}-{SEED}"
    if not data.exists():
        make("tabletop-weave", data, samples=SAMPLES, seed=SEED)
    oracle = _evaluate(UPPER_BOUND, data, home, console)
    copy = _evaluate(LOWER_BOUND, data, home, console)
    tiny = _evaluate(MODEL, data, home, console)  # the last one, so that `weft report last` shows the model
    runs = [oracle, tiny, copy]
    text_report = REPORTS / "tabletop.md"
    text_report.parent.mkdir(parents=True, exist_ok=True)
    text_report.write_text(api.report(runs), encoding="utf-8")
    page = api.write_report([tiny, oracle, copy], REPORTS / "tabletop", home=home)
    out = Screen(soft_wrap=True, highlight=False)
    out.print(_describe(tiny))
    glossary = dict(tiny.benchmark.presentation.glossary)
    for table in itertools.islice(build_tables(name_runs(runs)), TABLES):
        print_table(out, table, glossary=glossary)
        for column in table.columns:
            glossary.pop(column, None)  # it is explained once
    unscored = sum(verdict.value is None for run in runs for verdict in run.verdicts)
    if unscored:
        raise SystemExit(f"weft: {unscored} verdicts are unscored; the report says why")
    out.print(f"tables: {text_report}")
    out.print(f"every dialogue, with its images: {page}   (or `weft view --open`)")
    out.print("next: weft demo exposure-bias, weft demo test-time-scaling, weft run weave --help")


def _evaluate(model: str, data: Path, home: Path, console: Screen) -> Run:
    config = RunConfig(benchmark="weave", data=data, model=model, judge="tabletop/exact", home=home, options=OPTIONS)
    return run_quietly(open_run(config), console)


def _describe(run: Run) -> str:
    turns = len(run.turns)
    images = sum(turn.modality == "image" for turn in run.turns)
    return (
        f"A small model that ships with weft (9 million trained weights) has just held {SAMPLES} dialogues about a "
        f"drawn tabletop: {turns} turns, {images} of them images that it generated, with its own earlier images in the "
        "history. A judge that reads pixels scored every turn against the exact reference, in WEAVEBench's format and "
        "with WEAVEBench's formulas. The oracle, which does everything that is asked, is the upper bound; `copy`, "
        "which returns its input, is the lower bound.\n"
    )
