"""The way to the screen. Whatever comes from a dataset, a model or a server is shown with what could steer a terminal
made visible, and without any key; so no command prints by itself."""

import sys


def say(text: object = "", *, end: str = "\n", flush: bool = False) -> None:
    """To standard output."""
    from weft.untrusted import format_for_terminal

    print(format_for_terminal(text), end=end, flush=flush)


def complain(text: object) -> None:
    """To standard error, as this program."""
    from weft.untrusted import format_for_terminal

    print(f"weft: {format_for_terminal(text)}", file=sys.stderr)
