"""weft models"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options as o
from weft.cli.terminal import say
from weft.errors import UserError

if TYPE_CHECKING:
    from weft.models.registry import About

app = typer.Typer(help="What can be named as --model and --judge, and what works with it.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def models(
    context: typer.Context,
    reach: Annotated[bool, typer.Option("--reach/--no-reach", help="Open a connection to each provider; no key is sent.")] = True,
    format: Annotated[str, typer.Option("--format", help="screen or md.")] = "screen",
) -> None:
    """What can be named as --model and --judge: what each provider takes and gives, what it needs, whether it can be reached; options; and
    for weft.toml, what stands behind each name.

    Examples:

      weft models

      weft models --no-reach --format md

      weft models try openai-chat/NAME@http://127.0.0.1:8000/v1
    """
    if context.invoked_subcommand is not None:
        return
    if format not in ("screen", "md"):
        raise UserError(f"--format {format}: give screen or md")
    from weft import benchmarks
    from weft.models.compose import composition, compositions
    from weft.models.registry import declared, known_of, load_target, providers, read_config
    from weft.secrets import without_secrets

    makes = {name: load_target(target) for name, (target, _) in sorted(providers().items())}
    known = {name: found for name, make in makes.items() if (found := known_of(make)) is not None}
    _matrix(known, reach, format)
    if format == "md":
        return
    say("names")
    for name, (_, what) in sorted(providers().items()):
        say(f"  {name:<16} {what}")
    say(f"  {'truth':<16} the dataset's own answers: what a perfect model would send")
    say(f"  {'file.py:NAME':<16} a function or object of your own: (messages, want) -> str, PIL.Image, or a list of both")
    say("compositions: NAME:role=MODEL,role=MODEL")
    for name in sorted(compositions()):
        say(f"  {name:<16} {', '.join(composition(name).roles)}")
    say("benchmarks")
    for name in sorted(benchmarks.names()):
        say(f"  {name}")
    named = read_config().get("models", {})
    if named:
        say("weft.toml")
        for name, entry in sorted(named.items()):
            rest = ", ".join(f"{key}={value}" for key, value in entry.items() if key != "use")
            say(f"  {name:<16} {without_secrets(str(entry.get('use', '(no `use`)')))}{', ' + rest if rest else ''}")
    say("options")
    for name, make in makes.items():
        if options := declared(make):
            say(f"  {name:<16} {', '.join(sorted(options))}")
    say(f"  {'file.py:NAME':<16} name, version, concurrency, timeout, images, own_images, max_side, most")


COLUMNS = (
    "provider",
    "pictures in",
    "its own",
    "words",
    "pictures",
    "both",
    "in order",
    "thoughts",
    "seed",
    "size",
    "extra",
    "key",
    "reachable",
)


def _matrix(known: "dict[str, About]", reach: bool, format: str) -> None:
    from weft.models.reach import reached

    found = reached([about.url for about in known.values() if about.url and reach])
    rows = [_row(name, about, found) for name, about in known.items()]
    if format == "md":
        for cells in (COLUMNS, ["---"] * len(COLUMNS), *rows):
            say(f"| {' | '.join(cells)} |")
        return
    widths = [max(len(row[at]) for row in (COLUMNS, *rows)) for at in range(len(COLUMNS))]
    for row in (COLUMNS, *rows):
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    say()
    say(
        "pictures in: among the words (mixed) or before them (list), and how many; more are put in one numbered row, and the model is told."
    )
    say("its own: pictures that it made go back in its own turns, or in the user's. size: how the size of a picture is told to it.")
    say()


def _row(name: str, about: "About", found: Any) -> list[str]:
    import importlib.util
    import os

    from weft.models.wire import OTHERS, key_variable

    takes, gives = about.takes, about.gives
    kind = {"interleaved": "mixed", "list": "list", "strip": "one row", "none": "none"}[takes.images]
    variable = key_variable(about.url) if about.url else OTHERS if about.key and not _is_local(name) else ""
    missing = "not installed" if about.extra == "ocr" and importlib.util.find_spec("rapidocr") is None else "here"
    where = {"": "yes", None: "?"}.get(found.get(about.url), "no") if about.url else missing if _is_local(name) else "at your address"
    marks = [gives.text, gives.image, gives.both, gives.both and gives.order, gives.thoughts, gives.seed]
    return [
        name,
        f"{kind}, {takes.most}" if takes.most else kind,
        "its turns" if takes.own_images == "assistant" else "user's",
        *("yes" if mark else "-" for mark in marks),
        gives.sizes if gives.image else "-",
        about.extra or "-",
        f"{variable}{' (set)' if os.environ.get(variable) else ''}" if variable else "-",
        where,
    ]


def _is_local(name: str) -> bool:
    """Whether nothing of it is behind an address."""
    from weft.models.registry import providers

    return "URL" not in providers()[name][1] and "http" not in providers()[name][1]


@app.command("presets")
def list_presets(
    name: Annotated[str | None, typer.Argument(help="A paper (weave, weaver, imug, planviz, rover), or PAPER/MODEL. Default: all.")] = None,
) -> None:
    """Published settings of models and judges, for `--preset`: what each sets, where it is from, what to know.

    Examples:

      weft models presets

      weft models presets weave

      weft models presets planviz/bagel
    """
    from weft.models.presets import preset, presets

    if name and not any(known == name or known.startswith(f"{name}/") for known in presets()):
        preset(name)  # an unknown one is an error that tells which there are
    for known, one in presets().items():
        if name in (None, known, known.partition("/")[0]):
            say(f"{known}: {', '.join(f'{key}={value}' for key, value in one.settings.items())}")
            say(f"    {one.source}")
            if one.note:
                say(f"    {one.note}")


@app.command("try")
def attempt(
    name: Annotated[str, typer.Argument(help="provider/model, provider/model@url, a name from weft.toml, or file.py:NAME.")],
    model_opt: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for the model. Repeatable.")] = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Ask a model for words, for JSON, for a picture, for an edit, and for a second turn about its own picture: five small calls, of which
    none is remembered from before. What came is shown, and pictures are kept as files.

    Examples:

      weft models try gemini/gemini-3-pro-image --model-opt image_size=1K

      weft models try openai-chat/NAME@http://127.0.0.1:8000/v1

    Exit code: 0 if all works that the model is said to do, 1 if something does not, 2 for a mistake in the command.
    """
    import asyncio
    import sys
    from pathlib import Path

    from weft.engine.prices import price_of
    from weft.engine.probe import Probe, probe
    from weft.models.registry import read_config, resolve
    from weft.store.blobs import Blobs

    if name == "truth" or name.startswith("folder/"):
        raise UserError(f"{name} answers a dataset's requests only: there is nothing to try")
    folder = Path(home).absolute()
    blobs, settings = Blobs(folder / "blobs"), read_config()
    endpoint = resolve(name, blobs, o.pairs(model_opt, "--model-opt"), settings)
    say(f"{endpoint.name} at {endpoint.address}")

    def tell(one: Probe) -> None:
        state = {True: "works", False: "FAILS", None: "not asked"}[one.works]
        used = one.reply.usage if one.reply is not None else None
        spent = [f"{one.seconds:.1f} s"] if one.reply is not None else []
        if used is not None:
            spent += [f"{used.tokens_in} + {used.tokens_out} tokens"] * bool(used.tokens_in or used.tokens_out)
            spent += [f"${used.cost or 0:.4f}"] * bool(used.cost)
        say(f"  {one.what:<30} {state:<10} {one.told}{' (' + ', '.join(spent) + ')' if spent else ''}", flush=True)
        for number, image in enumerate(one.reply.images if one.reply is not None else ()):
            kept = folder / "tries" / f"{one.what.split(',')[0].replace(' ', '-')}{f'-{number}' if number else ''}.{image.media_type[6:]}"
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(blobs.read(image))
            say(f"  {'':<30} {'':<10} {kept}")

    found = asyncio.run(probe(endpoint, blobs, folder, price_of(endpoint, settings.get("prices", {})), tell))
    sys.exit(1 if any(one.works is False for one in found) else 0)
