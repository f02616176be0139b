"""`weft run` without arguments: the whole of weft on a drawn table, in a minute, with nothing but what ships."""

import itertools
from pathlib import Path

from weft import api
from weft.cli.screen import Screen
from weft.cli.show import show_table
from weft.cli.work import quietly
from weft.evaluation.config import RunConfig
from weft.evaluation.session import open_run
from weft.results.run import build_tables, name_runs
from weft_tabletop.make import make

SAMPLES = 100
SEED = 0
MODELS = ("tabletop/oracle", "tabletop/tiny", "copy")


def default_run(home: Path) -> None:
    console = Screen(stderr=True, soft_wrap=True)
    data = home / f"tabletop-weave-{SAMPLES}-{SEED}"
    if not data.exists():
        make("tabletop-weave", data, samples=SAMPLES, seed=SEED)
    options = {"history": "dialogue", "placement": "inline"}
    runs = [
        quietly(
            open_run(
                RunConfig(benchmark="weave", data=data, model=model, judge="tabletop/exact", home=home, options=options)
            ),
            console,
        )
        for model in MODELS
    ]
    path = Path("reports") / "tabletop.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(api.report(runs), encoding="utf-8")
    page = api.write_report([runs[1], runs[0], runs[2]], Path("reports") / "tabletop", home=home)
    turns = len(runs[1].turns)
    pictures = sum(turn.modality == "image" for turn in runs[1].turns)
    out = Screen(soft_wrap=True, highlight=False)
    out.print(
        f"A small model that ships with weft (9 million weights, really trained) has just held {SAMPLES} dialogues about a drawn table: "
        f"{turns} turns, {pictures} of them pictures that it drew, with its own earlier pictures in the history. A judge that reads pixels "
        "scored every turn against the exact truth, in WEAVEBench's format and with WEAVEBench's formulas. "
        "The oracle, which does all that is asked, is the ceiling, and `copy`, which only returns what it was shown, the floor.\n"
    )
    for table in itertools.islice(build_tables(name_runs(runs)), 5):
        show_table(out, table)
    unscored = sum(verdict.value is None for run in runs for verdict in run.verdicts)
    if unscored:
        raise SystemExit(f"weft: {unscored} verdicts are unscored; the report says why")
    out.print(f"tables: {path}")
    out.print(f"every dialogue, with its pictures: {page}   (or `weft view --open`)")
    out.print("next: weft demo exposure-bias, weft demo test-time-scaling, weft run weave --help")
