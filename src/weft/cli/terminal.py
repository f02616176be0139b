"""The way to the screen. Whatever comes from a dataset, a model or a server is shown with what could steer a terminal made visible, and
without any key; so no command prints by itself."""

import sys


def say(text: object = "", *, end: str = "\n", flush: bool = False) -> None:
    """To standard output."""
    from weft.untrusted import told

    print(told(text), end=end, flush=flush)


def complain(text: object) -> None:
    """To standard error, as this program."""
    from weft.untrusted import told

    print(f"weft: {told(text)}", file=sys.stderr)
