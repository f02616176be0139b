"""All commands in one place. Command modules import what they need inside their functions, so that `--help` is
quick."""

from typing import Annotated

import typer

from weft.cli.agree import agree
from weft.cli.arena import app as arena_app
from weft.cli.data import app as data_app
from weft.cli.defaults import App
from weft.cli.demo import demo
from weft.cli.doctor import doctor
from weft.cli.init import init
from weft.cli.journal import app as journal_app
from weft.cli.judge import app as judge_app
from weft.cli.models import app as models_app
from weft.cli.rate import rate
from weft.cli.report import compare, report
from weft.cli.run import app as run_app
from weft.cli.runs import app as runs_app
from weft.cli.sample import show
from weft.cli.score import HELP, ScoreCommand, score
from weft.cli.serve import serve
from weft.cli.suite import app as suite_app
from weft.cli.terminal import say
from weft.cli.train import app as train_app
from weft.cli.view import view
from weft.cli.write import write

app = typer.Typer(
    cls=App,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _version(wanted: bool) -> None:
    if wanted:
        from weft import __version__

        say(f"weft {__version__}")
        raise typer.Exit


@app.callback()
def weft(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            envvar="WEFT_CONFIG",
            help="Models, prices, defaults. Default: weft.toml beside the work. May stand anywhere.",
        ),
    ] = None,
) -> None:
    """Evaluate unified multimodal models in multi-turn, interleaved dialogues.

    Every answer is journalled before it is used: to go on after a crash, run the same command again."""


app.add_typer(run_app, name="run")
app.command(cls=ScoreCommand, help=HELP)(score)
app.command()(rate)
app.command()(write)
app.command()(serve)
app.command()(report)
app.command()(compare)
app.command()(agree)
app.command()(view)
app.command()(show)
app.add_typer(judge_app, name="judge")
app.add_typer(runs_app, name="runs")
app.add_typer(suite_app, name="suite")
app.add_typer(arena_app, name="arena")
app.add_typer(data_app, name="data")
app.add_typer(journal_app, name="journal")
app.command()(demo)
app.add_typer(train_app, name="train")
app.add_typer(models_app, name="models")
app.command()(doctor)
app.command()(init)
