"""How help texts are laid out: commands in panels, descriptions never cut, examples never wrapped.

typer's own panels need rich, whose import would make `weft --help` slow; these are plain text."""

from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperGroup

CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 120}
PANELS = {  # the commands of `weft`, in the order in which its help lists them
    "Evaluate": ("run", "score", "suite", "sweep", "arena", "write"),
    "Look at results": (
        *("runs", "report", "compare", "relative", "correlate", "distribution", "labels"),
        *("show", "figure", "view"),
    ),
    "Judges and people": ("judge", "rate", "agree"),
    "Data": ("data", "build", "journal"),
    "Administration": ("init", "doctor", "models", "serve", "train", "demo"),
}
EXAMPLE_STARTS = ("weft ", "rsync ")
KEEP_LINES = "\b\n"  # at the beginning of a paragraph: do not wrap it


class HelpGroup(TyperGroup):
    """A group whose help lists each of its commands with its whole first sentence."""

    panels: Mapping[str, Sequence[str]] = {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        names = self.list_commands(ctx)
        width = max(map(len, names))
        for title, members in (self.panels or {"Commands": names}).items():
            entries: list[tuple[str, str]] = []
            for name in members:
                command = self.get_command(ctx, name)
                if command is not None and not command.hidden:
                    # All names have the same width, so that the descriptions of all panels are aligned.
                    entries.append((name.ljust(width), command.get_short_help_str(limit=500)))
            with formatter.section(title):
                formatter.write_dl(entries)


def keep_examples(text: str) -> str:
    """Return a help text whose examples are not wrapped: a user copies them."""
    paragraphs: list[str] = []
    for paragraph in text.split("\n\n"):
        if paragraph.lstrip().startswith(EXAMPLE_STARTS):
            paragraphs.append(KEEP_LINES + paragraph)
        else:
            paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def keep_examples_of_commands(group: TyperGroup) -> None:
    """Do so for every command of a group, and for the commands of its groups."""
    for command in group.commands.values():
        command.help = keep_examples(command.help or "")
        if isinstance(command, TyperGroup):
            keep_examples_of_commands(command)
