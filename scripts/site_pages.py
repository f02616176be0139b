"""Generate the site's reference pages while MkDocs builds it: one page for each command, with its own `--help`.

MkDocs calls `on_files` (see `hooks` in mkdocs.yml). Nothing is written to the docs folder, so the pages cannot fall
behind the commands.
"""

import inspect
from collections.abc import Iterator
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url
from typer.main import get_command

from weft.cli.app import app

FOLDER = "reference/cli"
WIDTH = 100  # columns of the help
REMOTE_WORKER = "https://unpkg.com/iframe-worker/shim"  # the theme's way to search pages that are opened as files
LOCAL_WORKER = "assets/file-worker.js"


def on_files(files: Files, config: Any) -> Files:
    for path, text in command_pages(get_command(app)):
        files.append(File.generated(config, path, content=text))
    return files


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Point the page at our own worker: nothing is loaded from elsewhere."""
    return output.replace(REMOTE_WORKER, get_relative_url(LOCAL_WORKER, page.url))


def command_pages(root: Any) -> Iterator[tuple[str, str]]:
    """Yield (path, Markdown) for each top-level command, then for the index."""
    context = build_context(root, "weft")
    lines = ["# Commands", "", "| command | what it does |", "| --- | --- |"]
    for name, command in subcommands(root, context):
        lines.append(f"| [weft {name}](cli/{name}.md) | {summary(command)} |")
        yield f"{FOLDER}/{name}.md", command_page(name, command, context)
    lines += ["", "`weft COMMAND --help` prints the same. Options of every command can have defaults in"]
    lines += ["[weft.toml](configuration.md)."]
    yield f"{FOLDER}.md", "\n".join(lines)


def command_page(name: str, command: Any, parent: Any) -> str:
    context = build_context(command, name, parent)
    sections = [f"# weft {name}", *help_block(command, context)]
    for inner_name, inner in subcommands(command, context):
        inner_context = build_context(inner, inner_name, context)
        sections += ["", f"## weft {name} {inner_name}", *help_block(inner, inner_context)]
    return "\n".join(sections) + "\n"


def subcommands(command: Any, context: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "list_commands"):  # Typer may bring its own copy of click, so classes say nothing
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None and not inner.hidden:
            yield name, inner


def help_block(command: Any, context: Any) -> list[str]:
    return ["", "```text", command.get_help(context).strip("\n"), "```"]


def build_context(command: Any, name: str, parent: Any = None) -> Any:
    return command.context_class(command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH)


def summary(command: Any) -> str:
    first = inspect.cleandoc(command.help or "").split("\n\n")[0]
    return " ".join(first.split()).replace("|", "\\|").replace("<", "&lt;")
