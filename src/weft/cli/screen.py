"""rich's console for texts that come from anywhere: a string is printed as it is, never as markup."""

from typing import Any

from rich.console import Console
from rich.text import Text

from weft.untrusted import format_for_terminal


class Screen(Console):
    """A console without markup and highlighting. Control characters in strings are escaped."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*map(_as_text, objects), **options)


def _as_text(renderable: Any) -> Any:
    if isinstance(renderable, str):
        return Text(format_for_terminal(renderable))
    return renderable
