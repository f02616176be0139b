"""weft report, weft runs"""

from typing import Annotated

import typer

from weft.cli import options as o


def report(
    run: Annotated[list[str] | None, typer.Argument(help="Run ids, their beginnings, or 'last'. Default: last.")] = None,
    format: Annotated[str, typer.Option("--format", "-f", help="md, latex, csv, or json.")] = "md",
    out: Annotated[o.Path | None, typer.Option("--out", "-o", help="Write to this file instead of the terminal.")] = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """The paper's tables with our rows beside the published ones. May be called while the run goes on.

    Examples:

      weft report last

      weft report weave-bagel-1a2b3c4d weave-copy-5e6f --format latex --out table.tex
    """
    from weft import api
    from weft.store.journal import Journal

    journal = Journal(home / "journal.sqlite", readonly=True)
    text = api.report([api.load_run(journal, name) for name in run or ["last"]], format)
    if out is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
        print(out)


def runs(home: o.Home = o.Path(".weft")) -> None:
    """All runs in the journal, the latest last."""
    import time

    from weft.store.journal import Journal

    for record in Journal(home / "journal.sqlite", readonly=True).runs():
        started = time.strftime("%Y-%m-%d %H:%M", time.gmtime(record.started))
        model, judge = record.manifest["model"]["name"], record.manifest["judge"]["name"]
        print(f"{record.id}  {record.state}  {started}  {model}, judged by {judge}, history {record.manifest['view']['history']}")
