"""Plain lines to the terminal. Control characters and keys in texts from datasets, models and servers are never
printed: they are escaped or removed. No command prints by any other way."""

import sys
from pathlib import Path


def say(text: object = "", *, end: str = "\n", flush: bool = False) -> None:
    """Print to standard output."""
    from weft.untrusted import format_for_terminal

    print(format_for_terminal(text), end=end, flush=flush)


def complain(text: object) -> None:
    """Print to standard error, after `weft: `."""
    from weft.untrusted import format_for_terminal

    print(f"weft: {format_for_terminal(text)}", file=sys.stderr)


def open_in_browser(address: str, *, what: str = "page") -> None:
    """Open an address in the user's browser. Where there is no browser, say so: it is never an error."""
    import webbrowser

    if not webbrowser.open(address):
        say(f"no browser could be opened here: open the {what} yourself")


def print_or_write(text: str, out: Path | None) -> None:
    """Print a text or, if `out` names a file, write it there and print the file's name."""
    if out is None:
        say(text.rstrip("\n"))
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    say(out)
