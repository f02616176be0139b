"""All commands in one place. Command modules import what they need inside their functions, so that `--help` is
quick."""

from typing import Annotated

import typer

from weft.cli.agree import agree
from weft.cli.arena import app as arena_app
from weft.cli.build import app as build_app
from weft.cli.compare import compare
from weft.cli.config_defaults import RootGroup
from weft.cli.correlate import correlate
from weft.cli.data import app as data_app
from weft.cli.demo import demo
from weft.cli.distribution import distribution
from weft.cli.doctor import doctor
from weft.cli.figure import figure
from weft.cli.help import CONTEXT_SETTINGS
from weft.cli.init import init
from weft.cli.journal import app as journal_app
from weft.cli.judge import app as judge_app
from weft.cli.labels import labels
from weft.cli.models import app as models_app
from weft.cli.rate import rate
from weft.cli.relative import relative
from weft.cli.report import report
from weft.cli.run import app as run_app
from weft.cli.runs import app as runs_app
from weft.cli.score import HELP, ScoreCommand, score
from weft.cli.serve import serve
from weft.cli.show import show
from weft.cli.suite import app as suite_app
from weft.cli.sweep import app as sweep_app
from weft.cli.terminal import say
from weft.cli.train import app as train_app
from weft.cli.view import view
from weft.cli.write import write

app = typer.Typer(
    cls=RootGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=CONTEXT_SETTINGS,
)


def _print_version(given: bool) -> None:
    if given:
        from weft import __version__

        say(f"weft {__version__}")
        raise typer.Exit


@app.callback()
def weft(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            envvar="WEFT_CONFIG",
            help="Models, prices, defaults. Default: weft.toml in the working directory. Accepted in any position.",
        ),
    ] = None,
) -> None:
    """Evaluate unified multimodal models in multi-turn, interleaved dialogues.

    Every reply is cached in a journal before it is used: after a crash, run the same command again to resume.

    Examples:

      weft run                             # a first evaluation: no key, no network

      weft run weave --data DATA --model MODEL --judge JUDGE

      weft report last --open
    """


app.add_typer(run_app, name="run")
app.command(cls=ScoreCommand, help=HELP)(score)
app.add_typer(suite_app, name="suite")
app.add_typer(sweep_app, name="sweep")
app.add_typer(arena_app, name="arena")
app.command()(write)
app.add_typer(runs_app, name="runs")
app.command()(report)
app.command()(compare)
app.command()(relative)
app.command()(correlate)
app.command()(distribution)
app.command()(labels)
app.command()(show)
app.command()(figure)
app.command()(view)
app.add_typer(judge_app, name="judge")
app.command()(rate)
app.command()(agree)
app.add_typer(data_app, name="data")
app.add_typer(build_app, name="build")
app.add_typer(journal_app, name="journal")
app.command()(init)
app.command()(doctor)
app.add_typer(models_app, name="models")
app.command()(serve)
app.add_typer(train_app, name="train")
app.command()(demo)
