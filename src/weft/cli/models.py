"""weft models"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.help import HelpGroup
from weft.cli.options import DEFAULT_HOME, HomeOption, parse_pairs
from weft.cli.terminal import say
from weft.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.models.registry import ProviderInfo

app = typer.Typer(cls=HelpGroup, rich_markup_mode=None)
FORMATS = ("screen", "md")
COLUMNS = (
    "provider",
    "image input",
    "own images",
    "text",
    "JSON",
    "images",
    "interleaved",
    "reasoning",
    "seed",
    "size",
)
IMAGE_INPUTS = {"interleaved": "inline", "list": "list", "strip": "one row", "none": "none"}
LEGEND = (
    "image input: inline between texts, or in a list before them, and how many; more are put into one numbered row.",
    "own images: whether its earlier images are in its own turns or in the user's. "
    "interleaved: text and images in one reply, perhaps in order.",
    "size: how an image's size is requested: in pixels, as a ratio, or only in the prompt.",
)


@app.callback(invoke_without_command=True)
def models(
    context: typer.Context,
    reach: Annotated[
        bool, typer.Option("--reach/--no-reach", help="Open a connection to each provider; no key is sent.")
    ] = True,
    format: Annotated[str, typer.Option("--format", metavar="FORMAT", help="screen or md.")] = "screen",
) -> None:
    """List the names for --model and --judge, and what they support.

    For each provider: input and output modalities, the key it needs, whether it can be reached, its options. For the
    names in weft.toml: what they stand for.

    Examples:

      weft models

      weft models --no-reach --format md

      weft models try openai-chat/NAME@http://127.0.0.1:8000/v1
    """
    if context.invoked_subcommand is not None:
        return
    if format not in FORMATS:
        raise UserError(f"--format {format}: give screen or md")
    from weft.models.registry import info_of, list_providers, load_provider

    providers: dict[str, Any] = {}
    broken: list[str] = []
    for name in sorted(list_providers()):
        try:
            providers[name] = load_provider(name)
        except UserError as error:
            broken.append(str(error))
    infos: dict[str, ProviderInfo] = {}
    for name, provider in providers.items():
        info = info_of(provider)
        if info is not None:
            infos[name] = info
    if format == "md":
        _print_markdown_matrix(infos)
    else:
        _print_matrix(infos, reach)
    for line in broken:
        say(line)
    if format == "screen":
        _print_names(providers)
        _print_compositions_and_benchmarks()
        _print_configured_models()
        _print_options(providers)


def _print_entry(name: str, text: str) -> None:
    say(f"  {name:<16} {text}")


def _print_names(providers: "Mapping[str, Any]") -> None:
    from weft.models.registry import list_providers

    say("names")
    for name, (_, description) in sorted(list_providers().items()):
        is_plugin = description.startswith(("from ", "installed"))
        if is_plugin and name in providers:
            first_line = (providers[name].__doc__ or "").strip().split("\n")[0]
            if first_line:
                description = f"{first_line} ({description})"
        _print_entry(name, description)
    _print_entry("reference", "the dataset's reference answers: the outputs of a perfect model")
    _print_entry(
        "file.py:NAME", "a function or object of your own: (messages, want) -> str, PIL.Image, or a list of both"
    )


def _print_compositions_and_benchmarks() -> None:
    from weft.benchmarks import list_benchmarks
    from weft.models.compose import list_compositions, load_composition

    say("compositions: NAME:role=MODEL,role=MODEL")
    for name in sorted(list_compositions()):
        _print_entry(name, ", ".join(load_composition(name).roles))
    say("benchmarks")
    for name in sorted(list_benchmarks()):
        say(f"  {name}")


def _print_configured_models() -> None:
    from weft.models.config import read_config
    from weft.secrets import strip_url_secrets

    configured = read_config().get("models", {})
    if configured:
        say("weft.toml")
    for name, entry in sorted(configured.items()):
        parts = [strip_url_secrets(str(entry.get("use", "(no `use`)")))]
        parts += [f"{key}={value}" for key, value in entry.items() if key != "use"]
        _print_entry(name, ", ".join(parts))


def _print_options(providers: "Mapping[str, Any]") -> None:
    from weft.models.function import DECLARED_OPTIONS
    from weft.models.registry import options_of

    say("options")
    for name, provider in providers.items():
        options = options_of(provider)
        if options:
            _print_entry(name, ", ".join(sorted(options)))
    _print_entry("file.py:NAME", ", ".join(DECLARED_OPTIONS))


def _print_markdown_matrix(infos: "Mapping[str, ProviderInfo]") -> None:
    rows: list[Sequence[str]] = [(*COLUMNS, "key"), ["---"] * (len(COLUMNS) + 1)]
    for name, info in infos.items():
        rows.append([*build_provider_row(name, info), info.key or "-"])
    for cells in rows:
        say(f"| {' | '.join(cells)} |")


def _print_matrix(infos: "Mapping[str, ProviderInfo]", reach: bool) -> None:
    from weft.models.reach import check_reachable

    urls: list[str] = []
    if reach:
        urls = [info.url for info in infos.values() if info.url]
    problems = check_reachable(urls)
    _print_columns(COLUMNS, [build_provider_row(name, info) for name, info in infos.items()])
    say()
    for line in LEGEND:
        say(line)
    say()
    locations: list[list[str]] = []
    for name, info in infos.items():
        key, location = _describe_location(info, problems)
        if location:
            locations.append([name, key, location])
    _print_columns(("provider", "key", "location"), locations)
    say()


def _print_columns(header: "Sequence[str]", rows: "Sequence[Sequence[str]]") -> None:
    from weft.cli.columns import align_rows
    from weft.cli.screen import Screen

    for line in align_rows(header, rows, Screen().width, label=0):
        say(line)


def build_provider_row(name: str, info: "ProviderInfo") -> list[str]:
    """Return a provider's row of the matrix, in the order of COLUMNS."""
    takes = info.takes
    gives = info.gives
    image_input = IMAGE_INPUTS[takes.images]
    if takes.max_images:
        image_input += f", {takes.max_images}"
    own_images = "-"
    sizes = "-"
    if gives.image:
        own_images = "user turn"
        if takes.own_images == "assistant":
            own_images = "model turn"
        sizes = "text" if gives.sizes == "words" else gives.sizes
    interleaved = "-"
    if gives.interleaved:
        interleaved = "yes"
        if gives.ordered:
            interleaved = "ordered"
    return [
        name,
        image_input,
        own_images,
        _yes_or_dash(gives.text),
        _yes_or_dash(gives.text and gives.json),
        _yes_or_dash(gives.image),
        interleaved,
        _yes_or_dash(gives.thoughts),
        _yes_or_dash(gives.seed),
        sizes,
    ]


def _yes_or_dash(value: bool) -> str:
    if value:
        return "yes"
    return "-"


def _describe_location(info: "ProviderInfo", problems: "Mapping[str, str]") -> tuple[str, str]:
    """Return the variable of a provider's key, and where the provider is. `problems`: address -> why it cannot be
    reached, or nothing; an address that was not tried is missing."""
    from urllib.parse import urlsplit

    from weft.cli.doctor import describe_variable

    if info.extra:
        return "-", f"here, with the extra {info.extra}"
    if not info.url and not info.address:
        return "-", ""
    key = "-"
    if info.key:
        key = f"{info.key} ({describe_variable(info.key)})"
    if not info.url:
        return key, "at an address of yours"
    location = str(urlsplit(info.url).hostname)
    problem = problems.get(info.url)
    if problem == "":
        location += ", reachable"
    elif problem is not None:
        location += f", not reachable: {problem}"
    return key, location


@app.command("presets")
def list_presets(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A paper (weave, weaver, imug, planviz, rover), or PAPER/MODEL. Default: all."
        ),
    ] = None,
) -> None:
    """List published settings of models and judges, for `--preset`.

    What each sets, its source, and notes.

    Examples:

      weft models presets

      weft models presets weave

      weft models presets planviz/bagel
    """
    from weft.models.presets import find_preset, load_presets

    presets = load_presets()
    selected = [preset for preset in presets if name in (None, preset, preset.partition("/")[0])]
    if name and not selected:
        find_preset(name)  # raises, and names those that there are
    for preset_name in selected:
        preset = presets[preset_name]
        settings = [f"{key}={value}" for key, value in preset.settings.items()]
        say(f"{preset_name}: {', '.join(settings) or 'no settings'}")
        say(f"    {preset.source}")
        if preset.note:
            say(f"    {preset.note}")


@app.command("try")
def try_model(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="provider/model, provider/model@url, a name from weft.toml, or file.py:NAME."
        ),
    ],
    model_opt: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="NAME=VALUE for the model. Repeatable.")
    ] = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Try a model with five small calls, none of them cached.

    Text, JSON, an image, an edit, and a second turn about its own image. Prints the results, and writes the images to
    files. Exit code: 0 if everything works that the model is declared to support, 1 if something does not, 2 for a
    mistake in the command.

    Examples:

      weft models try gemini/gemini-3-pro-image --model-opt image_size=1K

      weft models try openai-chat/NAME@http://127.0.0.1:8000/v1
    """
    from weft.cli.try_model import try_endpoint

    if name == "reference" or name.startswith("folder/"):
        raise UserError(f"{name} answers only the requests of a dataset: there is nothing to try")
    try_endpoint(name, parse_pairs(model_opt, "--model-opt"), home)
