"""rich's console, for texts that are nothing but texts."""

from typing import Any

from rich.console import Console
from rich.text import Text

from weft.untrusted import format_for_terminal


class Screen(Console):
    """No markup, no highlighting, nothing that steers."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(Text(format_for_terminal(one)) if isinstance(one, str) else one for one in objects), **options)
