"""weft arena"""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from weft.cli import options as o
from weft.types import Table

app = typer.Typer(
    no_args_is_help=True,
    help="Battles between models: win rates, ratings, agreement with people.",
    rich_markup_mode=None,
)
Format = Annotated[str, typer.Option("--format", help="screen, md, latex, csv or json.")]


@app.callback()
def arena() -> None:
    """Battles between models: win rates, ratings, agreement with people."""


@app.command("run")
def fight(
    runs: Annotated[
        list[str], typer.Argument(help="Stored runs of one benchmark: ids or their beginnings (`weft runs`).")
    ],
    judge: o.Judge = None,
    both_orders: Annotated[
        bool,
        typer.Option(
            "--both-orders/--one-order", help="Each battle in both orders; two verdicts that contradict are a tie."
        ),
    ] = True,
    battles: Annotated[int, typer.Option(min=0, help="Battles about each item; 0: every pair.")] = 2,
    seed: Annotated[int, typer.Option(help="Which battles are drawn.")] = 0,
    judge_images: Annotated[
        int | None, typer.Option(min=3, help="Most pictures for the judge at once; more stand on sheets.")
    ] = None,
    prompts: o.Prompts = "weft",
    judge_opt: o.JudgeOpt = None,
    judge_repeats: o.JudgeRepeats = 1,
    judge_batch: o.JudgeBatch = False,
    concurrency: o.Concurrency = None,
    budget: o.Budget = None,
    dry_run: o.DryRun = False,
    benchmark: o.OwnBenchmark = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Let stored runs of any benchmark fight: a judge sees two answers to the same request and says which is better. No
    model is asked.

    The same command again goes on where the last one ended. `weft report last` has every battle on a page: both answers
    side by side, the verdicts, the reasons.

    Examples:

      weft arena run weaverbench-alpha-1a2b weaverbench-beta-3c4d weaverbench-gamma-5e6f --judge
      openai-chat/gpt-4o-2024-08-06

      weft arena run weave-a weave-b --judge judge --battles 0 --one-order

      weft arena run weave-a weave-b --judge judge --prompts official:OpenING

      weft arena table
    """
    given = {"both_orders": both_orders, "battles": battles, "seed": seed, "judge_images": judge_images}
    _judge(
        runs,
        judge,
        given,
        False,
        prompts,
        judge_opt,
        judge_repeats,
        judge_batch,
        concurrency,
        budget,
        dry_run,
        benchmark,
        home,
    )


@app.command()
def score(
    runs: Annotated[
        list[str], typer.Argument(help="Stored runs of one benchmark: ids or their beginnings (`weft runs`).")
    ],
    judge: o.Judge = None,
    judge_images: Annotated[
        int | None, typer.Option(min=3, help="Most pictures for the judge at once; more stand on sheets.")
    ] = None,
    prompts: o.Prompts = "weft",
    judge_opt: o.JudgeOpt = None,
    judge_repeats: o.JudgeRepeats = 1,
    judge_batch: o.JudgeBatch = False,
    concurrency: o.Concurrency = None,
    budget: o.Budget = None,
    dry_run: o.DryRun = False,
    benchmark: o.OwnBenchmark = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Score stored answers one by one in seven respects, from 0 to 10, as OpenING does: correctness, coherency,
    consistency, quality, preference, completeness, richness.

    Examples:

      weft arena score weaverbench-alpha-1a2b weaverbench-beta-3c4d --judge openai-chat/gpt-4o-2024-08-06

      weft arena scores last
    """
    given = {"judge_images": judge_images}
    _judge(
        runs,
        judge,
        given,
        True,
        prompts,
        judge_opt,
        judge_repeats,
        judge_batch,
        concurrency,
        budget,
        dry_run,
        benchmark,
        home,
    )


def _judge(
    runs: list[str],
    judge: str | None,
    given: dict[str, Any],
    single: bool,
    prompts: str,
    judge_opt: list[str] | None,
    judge_repeats: int,
    judge_batch: bool,
    concurrency: int | None,
    budget: float | None,
    dry_run: bool,
    benchmark: list[str] | None,
    home: o.Path,
) -> None:
    from weft.arena.stored_answers import StoredAnswers
    from weft.cli.work import finish
    from weft.errors import UserError
    from weft.evaluation.config import RunConfig
    from weft.evaluation.session import open_run

    if judge is None:
        raise UserError("give --judge; `weft arena run --help` has examples, `weft models` the names")
    config = RunConfig(
        judge=judge,
        options=given,
        benchmark=benchmark or None,
        home=home,
        prompts=prompts,
        concurrency=concurrency,
        judge_repeats=judge_repeats,
        judge_batch=judge_batch,
        budget=budget,
        judge_options=o.pairs(judge_opt, "--judge-opt"),
        probe=False,
    )
    finish(open_run(config, StoredAnswers(tuple(runs), single), dry=dry_run), dry_run=dry_run)


@app.command()
def export(
    run: Annotated[str, typer.Argument(help="A run of battles: its id, the beginning of it, or 'last'.")] = "last",
    out: Annotated[o.Path, typer.Option("--out", "-o", help="The file to write.")] = o.Path("verdicts.json"),
    home: o.Home = o.Path(".weft"),
) -> None:
    """Verdicts of a run of battles as a file, in OpenING's form: every order of every battle a record of its own.

    Examples:

      weft arena export last --out verdicts.json
    """
    import json

    from weft.arena.battle_runs import read_judged_battles
    from weft.cli.terminal import say
    from weft.errors import UserError
    from weft.stats.battles import list_models

    found, told = read_judged_battles(run, home)
    if out.exists():
        raise UserError(f"{out} is there already; name another file")
    _note(told)
    ids = {name: str(at) for at, name in enumerate(list_models(found))}
    sides = [
        (one, {"id": ids[one.first], "name": one.first}, {"id": ids[one.second], "name": one.second}) for one in found
    ]
    records = [{"data_id": one.item, "model_A": a, "model_B": b, "winner": one.winner} for one, a, b in sides]
    out.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    say(f"{out}: {len(records)} verdicts")


@app.command()
def table(
    verdicts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Runs of battles, or files of verdicts as OpenING has them, taken together. Default: the last run."
        ),
    ] = None,
    format: Format = "screen",
    home: o.Home = o.Path(".weft"),
) -> None:
    """Win rates of every model (FDT, without ties, with ties as 0 and as .5) and ratings, all with intervals; and
    whether the judge favours a place. Battles that were fought in both orders count once: two verdicts that contradict
    each other are a tie.

    Examples:

      weft arena table

      weft arena table judge_modelAB_results.json

      weft arena table ab.json ba.json --format md
    """
    from weft.arena.battle_runs import build_battle_tables, find_last_run, read_battle_verdicts
    from weft.arena.files import merge_verdicts
    from weft.arena.tables import build_win_rate_tables

    names = verdicts or [find_last_run(home)]
    found = merge_verdicts({str(at): read_battle_verdicts(name, home) for at, name in enumerate(names)})
    _note(found.problems)
    title = f"Win rates, {', '.join(o.Path(name).stem for name in names)}"
    if len(names) == 1:
        own = build_battle_tables(names[0], home, title)
    else:
        own = None
    _show(own or build_win_rate_tables(found.battles, title), format)


@app.command()
def agree(
    verdicts: Annotated[
        list[str],
        typer.Argument(help="Verdicts of judges, then those of people, which are the last: files, or runs of battles."),
    ],
    unseen: Annotated[
        str, typer.Option(help="Models that a judge was not trained on, with commas: their battles are shown apart.")
    ] = "",
    format: Format = "screen",
    home: o.Home = o.Path(".weft"),
) -> None:
    """How far judges agree with people, in all three ways: ties given to whom they lean, ties as a verdict of their
    own, without ties.

    Examples:

      weft arena agree gpt-judge_modelAB_results.json judge_modelAB_results.json

      weft arena agree gpt.json int.json human.json --unseen "Gemini1.5+Flux,anole"
    """
    from weft.arena.battle_runs import read_battle_verdicts
    from weft.arena.tables import build_agreement_table
    from weft.errors import UserError
    from weft.stats.battles import list_models

    if len(verdicts) < 2:
        raise UserError("give at least two files: verdicts of a judge, and those of people")
    found = [read_battle_verdicts(name, home) for name in verdicts]
    _note(problem for one in found for problem in one.problems)
    names = [name.strip() for name in unseen.split(",") if name.strip()]
    there = list_models(battle for one in found for battle in one.battles)
    strange = [name for name in names if name not in there]
    if strange:
        raise UserError(f"--unseen: no battle has a model {strange[0]!r}; there is {', '.join(there)}")
    stems = [o.Path(name).stem for name in verdicts]
    told = [stem if stems.count(stem) == 1 else name for stem, name in zip(stems, verdicts, strict=True)]
    judges = {name: one.battles for name, one in zip(told[:-1], found[:-1], strict=True)}
    _show(
        [build_agreement_table(judges, found[-1].battles, names, f"Agreement with {o.Path(verdicts[-1]).stem}")], format
    )


@app.command()
def scores(
    file: Annotated[
        str,
        typer.Argument(help="A file of scores of single answers, as OpenING has it; or a run of `weft arena score`."),
    ] = "last",
    format: Format = "screen",
    home: o.Home = o.Path(".weft"),
) -> None:
    """Scores of single answers by model: seven criteria and their mean.

    Examples:

      weft arena scores gpt-score_results.json
    """
    from weft.arena.battle_runs import build_score_tables
    from weft.arena.files import read_answer_scores
    from weft.arena.tables import build_summary_table

    path = o.Path(file)
    if not path.is_file():
        _show(build_score_tables(file, home), format)
        return
    found = read_answer_scores(path)
    _note(found.problems)
    _show([build_summary_table(found.entries, f"Scores, {path.stem}")], format)


def _note(problems: Iterable[str]) -> None:
    from weft.arena.files import MAX_LISTED_PROBLEMS
    from weft.cli.terminal import complain

    told = list(problems)
    for problem in told[:MAX_LISTED_PROBLEMS]:
        complain(problem)
    if len(told) > MAX_LISTED_PROBLEMS:
        complain(f"and {len(told) - MAX_LISTED_PROBLEMS} more of this kind")


def _show(tables: list[Table], format: str) -> None:
    from weft.cli.screen import Screen
    from weft.cli.show import show_table
    from weft.cli.terminal import say
    from weft.errors import UserError
    from weft.report.render import render

    if format == "screen":
        for one in tables:
            show_table(Screen(), one)
    elif format in ("md", "latex", "csv", "json"):
        text = render(tables, [], format)
        say(text.partition("\n\n")[2] if format == "md" else text)  # without the title of what is published
    else:
        raise UserError(f"--format {format}: there is screen, md, latex, csv and json")
