"""weft models"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options as o
from weft.cli.terminal import say
from weft.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.models.registry import ProviderInfo

app = typer.Typer(help="What can be named as --model and --judge, and what works with it.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def models(
    context: typer.Context,
    reach: Annotated[
        bool, typer.Option("--reach/--no-reach", help="Open a connection to each provider; no key is sent.")
    ] = True,
    format: Annotated[str, typer.Option("--format", help="screen or md.")] = "screen",
) -> None:
    """What can be named as --model and --judge: what each provider takes and gives, what it needs, whether it can be
    reached; options; and for weft.toml, what stands behind each name.

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
    from weft.models.compose import list_compositions, load_composition
    from weft.models.config import read_config
    from weft.models.function import DECLARED_OPTIONS
    from weft.models.registry import info_of, list_providers, load_provider, options_of
    from weft.secrets import strip_url_secrets

    makes = dict[str, Any]()
    broken = list[str]()
    for name in sorted(list_providers()):
        try:
            makes[name] = load_provider(name)
        except UserError as error:
            broken.append(str(error))
    known = {name: found for name, make in makes.items() if (found := info_of(make)) is not None}
    _matrix(known, reach, format)
    for line in broken:
        say(line)
    if format == "md":
        return
    say("names")
    for name, (_, what) in sorted(list_providers().items()):
        own = (
            what.startswith(("from ", "installed"))
            and name in makes
            and (makes[name].__doc__ or "").strip().split("\n")[0]
        )
        say(f"  {name:<16} {f'{own} ({what})' if own else what}")
    say(f"  {'truth':<16} the dataset's own answers: what a perfect model would send")
    say(
        f"  {'file.py:NAME':<16} a function or object of your own: (messages, want) -> str, PIL.Image, or a list of both"
    )
    say("compositions: NAME:role=MODEL,role=MODEL")
    for name in sorted(list_compositions()):
        say(f"  {name:<16} {', '.join(load_composition(name).roles)}")
    say("benchmarks")
    for name in sorted(benchmarks.list_benchmarks()):
        say(f"  {name}")
    named = read_config().get("models", {})
    if named:
        say("weft.toml")
        for name, entry in sorted(named.items()):
            rest = ", ".join(f"{key}={value}" for key, value in entry.items() if key != "use")
            say(f"  {name:<16} {strip_url_secrets(str(entry.get('use', '(no `use`)')))}{', ' + rest if rest else ''}")
    say("options")
    for name, make in makes.items():
        if options := options_of(make):
            say(f"  {name:<16} {', '.join(sorted(options))}")
    say(f"  {'file.py:NAME':<16} {', '.join(DECLARED_OPTIONS)}")


COLUMNS = ("provider", "pictures in", "own in", "words", "JSON", "pictures", "both", "thoughts", "seed", "size")
WHERE = ("key", "where")


def _matrix(known: "dict[str, ProviderInfo]", reach: bool, format: str) -> None:
    from weft.models.reach import check_reachable

    found = check_reachable([about.url for about in known.values() if about.url and reach])
    rows = {name: row(name, about) for name, about in known.items()}
    if format == "md":
        for cells in (
            (*COLUMNS, "key"),
            ["---"] * (len(COLUMNS) + 1),
            *([*cells, known[name].key or "-"] for name, cells in rows.items()),
        ):
            say(f"| {' | '.join(cells)} |")
        return
    _table([list(COLUMNS), *rows.values()])
    say()
    say(
        "pictures in: among the words (mixed) or before them (list), and how many; more go in one numbered row, and it is told."
    )
    say(
        "own in: where pictures that it made stand in the next request. both: words and pictures in one reply, perhaps in their order."
    )
    say("size: how the size of a picture is told to it, in pixels, as a ratio, or in the words of the request alone.")
    say()
    _table(
        [
            ["provider", *WHERE],
            *([name, *_place(name, about, found)] for name, about in known.items() if _place(name, about, found)[1]),
        ]
    )
    say()


def _table(rows: list[list[str]]) -> None:
    widths = [max(len(cells[at]) for cells in rows) for at in range(len(rows[0]))]
    for cells in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


def row(name: str, about: "ProviderInfo") -> list[str]:
    """A provider's line of the matrix."""
    takes = about.takes
    gives = about.gives
    kind = {"interleaved": "mixed", "list": "list", "strip": "one row", "none": "none"}[takes.images]
    if gives.ordered:
        both = "in order"
    else:
        both = "yes"
    marks = [gives.text, gives.text and gives.json, gives.image]
    return [
        name,
        f"{kind}, {takes.max_images}" if takes.max_images else kind,
        "-" if not gives.image else "its turns" if takes.own_images == "assistant" else "user's",
        *("yes" if mark else "-" for mark in marks),
        both if gives.interleaved else "-",
        *("yes" if mark else "-" for mark in (gives.thoughts, gives.seed)),
        gives.sizes if gives.image else "-",
    ]


def _place(name: str, about: "ProviderInfo", found: "Mapping[str, str]") -> list[str]:
    """The variable of its key, and where it is."""
    import os
    from urllib.parse import urlsplit

    if about.extra:
        return ["-", f"here, with the extra {about.extra}"]
    if not about.url and not about.address:
        return ["-", ""]
    if about.key:
        key = f"{about.key} ({'set' if os.environ.get(about.key) else 'not set'})"
    else:
        key = "-"
    if not about.url:
        return [key, "at an address of yours"]
    state = {"": "reachable", None: ""}.get(found.get(about.url), f"not reachable: {found.get(about.url)}")
    return [key, f"{urlsplit(about.url).hostname}{', ' + state if state else ''}"]


@app.command("presets")
def list_presets(
    name: Annotated[
        str | None, typer.Argument(help="A paper (weave, weaver, imug, planviz, rover), or PAPER/MODEL. Default: all.")
    ] = None,
) -> None:
    """Published settings of models and judges, for `--preset`: what each sets, where it is from, what to know.

    Examples:

      weft models presets

      weft models presets weave

      weft models presets planviz/bagel
    """
    from weft.models.presets import find_preset, load_presets

    if name and not any(known == name or known.startswith(f"{name}/") for known in load_presets()):
        find_preset(name)  # an unknown one is an error that tells which there are
    for known, one in load_presets().items():
        if name in (None, known, known.partition("/")[0]):
            say(f"{known}: {', '.join(f'{key}={value}' for key, value in one.settings.items())}")
            say(f"    {one.source}")
            if one.note:
                say(f"    {one.note}")


@app.command("try")
def attempt(
    name: Annotated[
        str, typer.Argument(help="provider/model, provider/model@url, a name from weft.toml, or file.py:NAME.")
    ],
    model_opt: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for the model. Repeatable.")] = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Ask a model for words, for JSON, for a picture, for an edit, and for a second turn about its own picture: five
    small calls, of which none is remembered from before. What came is shown, and pictures are kept as files.

    Examples:

      weft models try gemini/gemini-3-pro-image --model-opt image_size=1K

      weft models try openai-chat/NAME@http://127.0.0.1:8000/v1

    Exit code: 0 if all works that the model is said to do, 1 if something does not, 2 for a mistake in the command.
    """
    import asyncio
    import re
    import sys

    from weft.calls.prices import find_price
    from weft.calls.probe import PROBES, ProbeResult, probe_endpoint
    from weft.models.registry import resolve_endpoint
    from weft.workspace import Workspace, open_journal

    if name == "reference" or name.startswith("folder/"):
        raise UserError(f"{name} answers a dataset's requests only: there is nothing to try")
    workspace = Workspace(home)
    folder = workspace.home
    blobs = workspace.blobs
    settings = workspace.settings
    endpoint = resolve_endpoint(name, blobs, o.pairs(model_opt, "--model-opt"), settings)
    say(f"{endpoint.name} at {endpoint.address}")

    if endpoint.missing_setup:
        say(f"note: {endpoint.missing_setup}")
    done: dict[str, ProbeResult] = {}

    def tell(one: ProbeResult) -> None:
        """In one order, whichever is done first."""
        done[one.name] = one
        while PROBES[len(told) :] and PROBES[len(told)] in done:
            told.append(PROBES[len(told)])
            show(done[told[-1]])

    told: list[str] = []

    def show(one: ProbeResult) -> None:
        state = {True: "works", False: "FAILS", None: "not asked"}[one.works]
        if one.reply is not None:
            used = one.reply.usage
        else:
            used = None
        spent = [f"{one.seconds:.1f} s"] if one.seconds else []
        if used is not None:
            spent += [f"{used.tokens_in} + {used.tokens_out} tokens"] * bool(used.tokens_in or used.tokens_out)
            spent += [f"${used.cost or 0:.4f}"] * bool(used.cost)
        say(f"  {one.name:<30} {state:<10} {one.summary}{' (' + ', '.join(spent) + ')' if spent else ''}", flush=True)
        for number, image in enumerate(one.reply.images if one.reply is not None else ()):
            called = (
                f"{one.name.split(',')[0].replace(' ', '-')}{f'-{number}' if number else ''}.{image.media_type[6:]}"
            )
            kept = folder / "tries" / re.sub(r"[^A-Za-z0-9.-]+", "-", endpoint.name) / called
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(blobs.read(image))
            say(f"  {'':<30} {'':<10} {kept}")

    journal = open_journal(folder, write=True)
    found = asyncio.run(
        probe_endpoint(endpoint, blobs, journal, find_price(endpoint, settings.get("prices", {})), tell)
    )
    sys.exit(1 if any(one.works is False for one in found) else 0)
