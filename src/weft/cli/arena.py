"""weft arena"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli.help import HelpGroup
from weft.cli.options import (
    DEFAULT_HOME,
    BudgetOption,
    ConcurrencyOption,
    DryRunOption,
    FreshJudgeOption,
    HomeOption,
    JudgeBatchOption,
    JudgeOption,
    JudgeOptOption,
    JudgeRepeatsOption,
    OwnBenchmarkOption,
    PromptsOption,
    parse_pairs,
    split_names,
)
from weft.types import Table

app = typer.Typer(cls=HelpGroup, no_args_is_help=True, rich_markup_mode=None)
TABLE_FORMATS = ("md", "latex", "csv", "json")
FormatOption = Annotated[str, typer.Option("--format", metavar="FORMAT", help="screen, md, latex, csv or json.")]
RunsArgument = Annotated[
    list[str],
    typer.Argument(metavar="RUN", help="Stored runs of one benchmark: ids or their beginnings (`weft runs`)."),
]
JudgeImagesOption = Annotated[
    int | None,
    typer.Option(min=3, metavar="N", help="Most images for the judge at once; more are put on contact sheets."),
]


@app.callback()
def arena() -> None:
    """Compare models in pairs: win rates, ratings, agreement.

    Examples:

      weft arena run weave-a weave-b --judge JUDGE

      weft arena table
    """


@app.command("run")
def run_battles(
    runs: RunsArgument,
    judge: JudgeOption = None,
    both_orders: Annotated[
        bool,
        typer.Option("--both-orders/--one-order", help="Each battle in both orders; two contradicting verdicts tie."),
    ] = True,
    battles: Annotated[int, typer.Option(min=0, metavar="N", help="Battles about each item; 0: every pair.")] = 2,
    seed: Annotated[int, typer.Option(metavar="N", help="Which battles are drawn.")] = 0,
    judge_images: JudgeImagesOption = None,
    prompts: PromptsOption = "weft",
    judge_opt: JudgeOptOption = None,
    judge_repeats: JudgeRepeatsOption = 1,
    judge_batch: JudgeBatchOption = False,
    concurrency: ConcurrencyOption = None,
    budget: BudgetOption = None,
    fresh: FreshJudgeOption = False,
    dry_run: DryRunOption = False,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Let a judge compare the answers of stored runs in pairs.

    The judge sees two answers to the same request and says which is better. The models are never called. The same
    command resumes what ended early. `weft report last` shows every battle: both answers side by side, the verdicts and
    their reasons.

    Examples:

      weft arena run weaverbench-alpha-1a2b weaverbench-beta-3c4d --judge openai/gpt-4.1

      weft arena run weave-a weave-b --judge JUDGE --battles 0 --one-order

      weft arena run weave-a weave-b --judge JUDGE --prompts official:OpenING

      weft arena table
    """
    fields: dict[str, Any] = {
        "judge": judge,
        "options": {"both_orders": both_orders, "battles": battles, "seed": seed, "judge_images": judge_images},
        "benchmark": benchmark or None,
        "home": home,
        "prompts": prompts,
        "concurrency": concurrency,
        "judge_repeats": judge_repeats,
        "judge_batch": judge_batch,
        "budget": budget,
        "fresh": fresh,
        "judge_options": parse_pairs(judge_opt, "--judge-opt"),
    }
    _judge_answers(runs, fields, single=False, dry_run=dry_run)


@app.command()
def score(
    runs: RunsArgument,
    judge: JudgeOption = None,
    judge_images: JudgeImagesOption = None,
    prompts: PromptsOption = "weft",
    judge_opt: JudgeOptOption = None,
    judge_repeats: JudgeRepeatsOption = 1,
    judge_batch: JudgeBatchOption = False,
    concurrency: ConcurrencyOption = None,
    budget: BudgetOption = None,
    fresh: FreshJudgeOption = False,
    dry_run: DryRunOption = False,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Score stored answers one by one on OpenING's seven criteria.

    Each from 0 to 10: correctness, coherency, consistency, quality, preference, completeness, richness.

    Examples:

      weft arena score weaverbench-alpha-1a2b weaverbench-beta-3c4d --judge openai/gpt-4.1

      weft arena scores last
    """
    fields: dict[str, Any] = {
        "judge": judge,
        "options": {"judge_images": judge_images},
        "benchmark": benchmark or None,
        "home": home,
        "prompts": prompts,
        "concurrency": concurrency,
        "judge_repeats": judge_repeats,
        "judge_batch": judge_batch,
        "budget": budget,
        "fresh": fresh,
        "judge_options": parse_pairs(judge_opt, "--judge-opt"),
    }
    _judge_answers(runs, fields, single=True, dry_run=dry_run)


def _judge_answers(runs: list[str], fields: dict[str, Any], *, single: bool, dry_run: bool) -> None:
    """Judge stored answers and end the program. `fields` are those of a `RunConfig`."""
    from weft.arena.stored_answers import StoredAnswers
    from weft.cli.execute import finish_session
    from weft.errors import UserError
    from weft.evaluation.config import RunConfig
    from weft.evaluation.session import open_run

    if fields["judge"] is None:
        raise UserError("give --judge; `weft arena run --help` has examples, `weft models` the names")
    config = RunConfig(**fields, preflight=False)
    finish_session(open_run(config, StoredAnswers(tuple(runs), single), dry=dry_run), dry_run=dry_run)


@app.command()
def export(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run of battles: its id, the beginning of its id, or 'last'.")
    ] = "last",
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")] = Path(
        "verdicts.json"
    ),
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write the verdicts of a run of battles in OpenING's format.

    Every order of every battle is a record of its own.

    Examples:

      weft arena export last --out verdicts.json
    """
    import json

    from weft.arena.battle_runs import read_judged_battles
    from weft.cli.terminal import say
    from weft.errors import UserError
    from weft.stats.battles import list_models

    battles, problems = read_judged_battles(run, home)
    if out.exists():
        raise UserError(f"{out} exists already; name another file")
    _print_problems(problems)
    ids = {name: str(index) for index, name in enumerate(list_models(battles))}
    records = [
        {
            "data_id": battle.item,
            "model_A": {"id": ids[battle.first], "name": battle.first},
            "model_B": {"id": ids[battle.second], "name": battle.second},
            "winner": battle.winner,
        }
        for battle in battles
    ]
    out.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    say(f"{out}: {len(records)} verdicts")


@app.command()
def table(
    verdicts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN|FILE", help="Runs of battles, or files in OpenING's format, pooled. Default: the last run."
        ),
    ] = None,
    format: FormatOption = "screen",
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show win rates and ratings of every model, with intervals.

    Win rates: FDT, without ties, with ties as 0 and as .5. Also whether the judge favours a position. Battles in both
    orders count once: two verdicts that contradict each other are a tie.

    Examples:

      weft arena table

      weft arena table judge_modelAB_results.json

      weft arena table ab.json ba.json --format md
    """
    from weft.arena.battle_runs import build_battle_tables, find_last_run, read_battle_verdicts
    from weft.arena.files import merge_verdicts
    from weft.arena.tables import build_win_rate_tables

    names = verdicts or [find_last_run(home)]
    pooled = merge_verdicts({str(index): read_battle_verdicts(name, home) for index, name in enumerate(names)})
    _print_problems(pooled.problems)
    title = f"Win rates, {', '.join(Path(name).stem for name in names)}"
    tables = None
    if len(names) == 1:
        tables = build_battle_tables(names[0], home, title)
    _print_tables(tables or build_win_rate_tables(pooled.battles, title), format)


@app.command()
def agree(
    verdicts: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|FILE", help="Verdicts of judges, then those of annotators, which are the last: files, or runs."
        ),
    ],
    unseen: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Models that a judge was not trained on, with commas: their battles are shown separately.",
        ),
    ] = "",
    format: FormatOption = "screen",
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Measure the agreement of judges with annotators about battles.

    In three ways: ties given to the side that they lean to, ties as a verdict of their own, without ties.

    Examples:

      weft arena agree gpt-judge_modelAB_results.json judge_modelAB_results.json

      weft arena agree gpt.json int.json human.json --unseen "Gemini1.5+Flux,anole"
    """
    from weft.arena.battle_runs import read_battle_verdicts
    from weft.arena.tables import build_agreement_table
    from weft.errors import UserError

    if len(verdicts) < 2:
        raise UserError("give at least two files: verdicts of a judge, and those of annotators")
    battles: list[Any] = []
    problems: list[str] = []
    for name in verdicts:
        source = read_battle_verdicts(name, home)
        battles.append(source.battles)
        problems += source.problems
    _print_problems(problems)
    unseen_models = split_names(unseen)
    _check_models(unseen_models, battles)
    judges = dict(zip(_short_names(verdicts)[:-1], battles[:-1], strict=True))
    title = f"Agreement with {Path(verdicts[-1]).stem}"
    _print_tables([build_agreement_table(judges, battles[-1], unseen_models, title)], format)


def _check_models(names: list[str], battles: list[Any]) -> None:
    """Raise UserError for a model that is in no battle."""
    from weft.errors import UserError
    from weft.stats.battles import list_models

    models = list_models(battle for some in battles for battle in some)
    for name in names:
        if name not in models:
            raise UserError(f"--unseen: no battle has a model {name!r}; the models are {', '.join(models)}")


def _short_names(paths: list[str]) -> list[str]:
    """Return the stems of paths; where two have the same, the whole paths."""
    stems = [Path(path).stem for path in paths]
    names: list[str] = []
    for stem, path in zip(stems, paths, strict=True):
        if stems.count(stem) == 1:
            names.append(stem)
        else:
            names.append(path)
    return names


@app.command()
def scores(
    file: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FILE", help="A run of `weft arena score`, or a file of scores in OpenING's format."
        ),
    ] = "last",
    format: FormatOption = "screen",
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show scores of single answers by model: seven criteria, their mean.

    Examples:

      weft arena scores gpt-score_results.json
    """
    from weft.arena.battle_runs import build_score_tables
    from weft.arena.files import read_answer_scores
    from weft.arena.tables import build_summary_table

    path = Path(file)
    if not path.is_file():
        _print_tables(build_score_tables(file, home), format)
        return
    scores = read_answer_scores(path)
    _print_problems(scores.problems)
    _print_tables([build_summary_table(scores.entries, f"Scores, {path.stem}")], format)


def _print_problems(problems: Iterable[str]) -> None:
    from weft.arena.files import MAX_LISTED_PROBLEMS
    from weft.cli.terminal import complain

    lines = list(problems)
    for line in lines[:MAX_LISTED_PROBLEMS]:
        complain(line)
    if len(lines) > MAX_LISTED_PROBLEMS:
        complain(f"and {len(lines) - MAX_LISTED_PROBLEMS} more of this kind")


def _print_tables(tables: list[Table], format: str) -> None:
    from weft.cli.screen import Screen
    from weft.cli.tables import print_table
    from weft.cli.terminal import say
    from weft.errors import UserError
    from weft.report.render import render, without_page_title

    if format == "screen":
        for each in tables:
            print_table(Screen(), each)
        return
    if format not in TABLE_FORMATS:
        raise UserError(f"--format {format}: choose screen, md, latex, csv or json")
    text = render(tables, [], format)
    if format == "md":
        text = without_page_title(text)
    say(text)
