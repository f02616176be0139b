"""weft train"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.help import HelpGroup
from weft.cli.terminal import say
from weft.cli.train_curve import curve

if TYPE_CHECKING:
    from weft.training.checkpoint import Checkpoint

app = typer.Typer(cls=HelpGroup, no_args_is_help=True, rich_markup_mode=None)
PARTS = ("images", "talker", "single")  # those of weft_tabletop.tiny.train, which needs torch
SHOWN = (  # of a checkpoint, while it trains
    *("loss", "understanding", "draw count", "build count", "visual loss", "images"),
    *("edit", "copy", "recall", "back"),
)
OutOption = Annotated[Path, typer.Option(metavar="PATH", help="The folder for the weights.")]
WorldOption = Annotated[
    str, typer.Option(metavar="NAME", help="full, which wants a GPU, or micro: four cells, under a minute on one core.")
]
StepsOption = Annotated[int | None, typer.Option(min=1, metavar="N", help="How many steps. Default: by world.")]
SeedOption = Annotated[int, typer.Option(min=0, metavar="N", help="The same seed gives the same weights.")]
RateOption = Annotated[
    float | None, typer.Option(min=1e-9, max=1.0, metavar="NUMBER", help="The highest learning rate.")
]
DeviceOption = Annotated[str, typer.Option(metavar="NAME", help="cpu or cuda. Default: cuda where there is a GPU.")]


@app.callback()
def train() -> None:
    """Train the models that ship with weft (extra `train`: torch).

    After a crash, run the same command again to resume from the last checkpoint. A checkpoint is a model for
    `weft run`.

    Examples:

      weft train tiny --out W

      weft train tiny --mix dialogues=.25 --world micro --out W

      weft train tiny-weaver --stage planner --mix 5g1u --world micro --out W

      weft train curve W
    """


@app.command()
def tiny(
    out: OutOption,
    mix: Annotated[
        str,
        typer.Option(
            metavar="NAME=NUMBER,...",
            help="Shares of tokens: dialogues, and single-turn or plain. The rest of dialogues=.25 is single turns.",
        ),
    ] = "",
    view: Annotated[
        str,
        typer.Option(metavar="NAME", help="Train on one view: dialogues, single-turn, or plain (one image at most)."),
    ] = "",
    world: WorldOption = "full",
    steps: StepsOption = None,
    seed: SeedOption = 0,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="With --mix or --view: a dataset in WEAVE's files, as `weft build` and `weft data make` write it. "
            "Default: dialogues that are made here.",
        ),
    ] = None,
    faults: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="How many rows have an image with one wrong cell.")
    ] = 0.0,
    own: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="How many rows show the model its own images.")
    ] = 0.0,
    rate: RateOption = None,
    device: DeviceOption = "",
    minutes: Annotated[
        float,
        typer.Option(
            min=0.05,
            metavar="NUMBER",
            help="Without --mix and --view: how long to train. The shipped weights took about 17 on one H200.",
        ),
    ] = 17.0,
    parts: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Without --mix and --view: which of images, talker and single, with commas. "
            "An existing image part is reused.",
        ),
    ] = "images,talker,single",
    workers: Annotated[int, typer.Option(min=0, metavar="N", help="Processes that generate dialogues.")] = 12,
) -> None:
    """Train the tiny model from scratch; with --mix or --view, a smaller one on dialogues that ask for memory.

    Without --mix and --view there are three parts: the image network, the talker, and a talker that only ever sees
    single turns.

    Examples:

      weft train tiny --out W

      weft train tiny --mix dialogues=.25 --world micro --out W

      weft train tiny --view single-turn --world micro --out W

      weft data make tabletop-weave-micro --out tables

      weft train tiny --data tables --view single-turn --world micro --out W

      weft run weave --data tables --model tabletop/tiny@W --judge tabletop/exact
    """
    from weft.errors import UserError

    if mix or view:
        from weft_tabletop.weaver.memory_recipes import plan_memory

        if data is not None and faults:
            raise UserError("--faults: with --data the dataset decides which images are wrong")
        recipe = plan_memory(world, mix, view, seed=seed, faults=faults, own=own, steps=steps, rate=rate)
        train_memory = _import("weft_tabletop.weaver.train.recall").train_memory
        checkpoint = train_memory(recipe, out, device=device, data=data, report=_report(recipe.steps))
        _say_where(checkpoint, f"tabletop/tiny@{out}")
        return
    if world != "full" or steps is not None or faults or own or rate is not None or data is not None:
        raise UserError("--world, --data, --steps, --rate, --faults and --own belong to training with --mix or --view")
    names = parts.split(",")
    for name in names:
        if name not in PARTS:
            raise UserError(f"--parts {parts}: the parts are images, talker and single")
    module = _import("weft_tabletop.tiny.train")
    module.train(out, minutes=minutes, parts=tuple(names), workers=workers)
    say(out)


@app.command("tiny-weaver")
def tiny_weaver(
    out: OutOption,
    stage: Annotated[str, typer.Option(metavar="NAME", help="planner, visualizer, or joint: both at once.")],
    mix: Annotated[
        str,
        typer.Option(
            metavar="MIX",
            help="und, 1g1u, 3g1u, 5g1u, 5g1u-no-documents, or weights of und, t2i, i2i and doc. "
            "Default: und for a planner, 5g1u for both.",
        ),
    ] = "",
    world: WorldOption = "full",
    start: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Weights of the same kind to go on from, for fewer steps.")
    ] = None,
    planner: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="The planner through which a visualizer reads orders. Default: that of --out."
        ),
    ] = None,
    watch: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A visualizer whose loss is measured while its planner is tuned."),
    ] = None,
    steps: StepsOption = None,
    batch: Annotated[int | None, typer.Option(min=1, metavar="N", help="Rows of a step.")] = None,
    rate: RateOption = None,
    rank: Annotated[
        int, typer.Option(min=0, max=64, metavar="N", help="Tune a planner through adapters of this rank (LoRA).")
    ] = 0,
    rows: Annotated[int | None, typer.Option(min=1, metavar="N", help="How many rows of each kind are made.")] = None,
    seed: SeedOption = 0,
    device: DeviceOption = "",
) -> None:
    """Train a planner, a visualizer that draws its orders, or both at once.

    The weights go into a folder of the stage in PATH. A visualizer's weights name the planner through whose states it
    reads orders.

    Examples:

      weft train tiny-weaver --stage planner --mix und --world micro --out BEFORE

      weft train tiny-weaver --stage planner --mix 5g1u --start BEFORE --world micro --out W

      weft train tiny-weaver --stage visualizer --world micro --out W

      weft data make tabletop-weaver-micro --out prompts

      weft run weaverbench --data prompts --judge tabletop/exact \\
        --model weaver:planner=tabletop/planner@W,visualizer=tabletop/visualizer@W
    """
    from weft.errors import UserError
    from weft_tabletop.weaver.files import PLANNER_FILE, find_file
    from weft_tabletop.weaver.recipes import plan_recipe

    given = {"steps": steps, "batch": batch, "rate": rate, "rows": rows}
    recipe = plan_recipe(stage, world, mix, tuned=start is not None, seed=seed, rank=rank, **given)
    if planner is not None and stage != "visualizer":
        raise UserError("--planner: only a visualizer reads orders through a planner")
    if watch is not None and stage != "planner":
        raise UserError("--watch: a visualizer is watched while its planner is tuned")
    if stage == "visualizer":
        planner = find_file(planner or out, PLANNER_FILE)
    module = _import("weft_tabletop.weaver.train.stages")
    checkpoint = module.train_stage(
        recipe,
        out / stage,
        start=start,
        planner=planner,
        watch=watch,
        device=device,
        report=_report(recipe.steps),
    )
    models = {
        "planner": f"tabletop/planner@{out}",
        "visualizer": f"weaver:planner=tabletop/planner@{out},visualizer=tabletop/visualizer@{out}",
        "joint": f"weaver:planner=tabletop/planner@{out},visualizer=tabletop/visualizer@{out}",
    }
    _say_where(checkpoint, models[stage])


app.command()(curve)


def _import(module: str) -> Any:
    """Import a module that needs torch."""
    import importlib

    from weft.errors import UserError

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(
            f"training needs torch, which is not installed ({error}); install the extra, from the clone: "
            "pip install -e '.[train]'"
        ) from None


def _report(steps: int) -> Callable[[int, Mapping[str, Any]], None]:
    """Print a line for each checkpoint."""
    from weft.rounding import format_number

    def report(step: int, measured: Mapping[str, Any]) -> None:
        shown = [f"{name} {format_number(measured[name], 3)}" for name in SHOWN if name in measured]
        seconds = f", {measured['seconds']:.0f} s" if "seconds" in measured else ""
        say(f"step {step}/{steps}{seconds}: {', '.join(shown)}", flush=True)

    return report


def _say_where(checkpoint: "Checkpoint", model: str) -> None:
    seen = ", ".join(f"{name} {count:,}" for name, count in checkpoint.seen.items())
    say(f"{checkpoint.folder}: trained for {checkpoint.step:,} steps on {seen} rows")
    say(f"as a model: {model}")
