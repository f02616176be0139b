"""Generate the site's reference pages while MkDocs builds it: one page for each command, made from the commands themselves.

MkDocs calls `on_files` (see `hooks` in mkdocs.yml). Nothing is written to the docs folder, so the pages cannot fall behind.
"""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import click
from mkdocs.structure.files import File, Files
from typer.main import get_command

from weft.cli.app import app

FOLDER = "reference/cli"
HIDDEN = {"--install-completion", "--show-completion", "--help"}


def on_files(files: Files, config: Any) -> Files:
    root = get_command(app)
    for path, text in command_pages(root):
        files.append(File.generated(config, path, content=text))
    return files


def command_pages(root: click.Command) -> Iterator[tuple[str, str]]:
    """Yield (path, Markdown) for the index and for each top-level command."""
    context = click.Context(root, info_name="weft")
    lines = ["# Commands", "", "| command | what it does |", "| --- | --- |"]
    for name, command in subcommands(root, context):
        lines.append(f"| [weft {name}](cli/{name}.md) | {table_cell(summary(command))} |")
        yield f"{FOLDER}/{name}.md", command_page(name, command, context)
    lines += [
        "",
        "`weft COMMAND --help` prints the same. Options of every command can have defaults in",
        "[weft.toml](configuration.md).",
    ]
    yield "reference/cli.md", "\n".join(lines)


def command_page(name: str, command: click.Command, parent: click.Context) -> str:
    sections = [f"# weft {name}", *describe(f"weft {name}", command, parent)]
    context = click.Context(command, parent=parent, info_name=name)
    for inner_name, inner in subcommands(command, context):
        sections += ["", f"## weft {name} {inner_name}", *describe(f"weft {name} {inner_name}", inner, context)]
    return "\n".join(sections) + "\n"


def subcommands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None and not inner.hidden:
            yield name, inner


def describe(title: str, command: click.Command, parent: click.Context) -> list[str]:
    """A command's help as Markdown: its usage, its text with examples as code, and a table of its options."""
    context = click.Context(command, parent=parent, info_name=title.split()[-1])
    usage = " ".join(command.collect_usage_pieces(context))
    lines = ["", "```", f"{title} {usage}", "```", *help_text(command)]
    arguments = [each for each in command.params if isinstance(each, click.Argument) and not each.hidden]
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if arguments:
        lines += ["", "| argument | |", "| --- | --- |"]
        lines += [f"| `{each.human_readable_name}` | {table_cell(argument_help(each))} |" for each in arguments]
    rows = [option_row(each, context) for each in options if not HIDDEN.intersection(each.opts)]
    if rows:
        lines += ["", "| option | |", "| --- | --- |", *rows]
    return lines


def help_text(command: click.Command) -> list[str]:
    """The help's paragraphs; a paragraph marked `\\b` (kept as it stands) is a block of code."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):
        if paragraph.startswith("\b"):
            lines += ["", "```", paragraph.removeprefix("\b").strip("\n"), "```"]
        else:
            lines += ["", escape(paragraph)]
    return lines


def argument_help(argument: click.Argument) -> str:
    return str(vars(argument).get("help") or "")


def option_row(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    metavar = ""
    if not option.is_flag and not option.count:
        metavar = f" `{option.make_metavar(context)}`"
    text = option.help or ""
    if option.show_default and option.default not in (None, False, (), []) and not callable(option.default):
        text += f" Default: `{option.default}`."
    if option.envvar:
        text += f" Environment: `{option.envvar}`."
    return f"| {names}{table_cell(metavar)} | {table_cell(text)} |"


def summary(command: click.Command) -> str:
    first = inspect.cleandoc(command.help or "").split("\n\n")[0]
    return " ".join(first.split())


def table_cell(text: str) -> str:
    return escape(" ".join(text.split())).replace("|", "\\|")


def escape(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*")
