"""The command line: one file a command, no logic. `main` turns user mistakes into one line and exit code 2."""

import gc
import sys


def main() -> None:
    from weft.cli.app import app
    from weft.errors import UserError, WeftError

    gc.set_threshold(50_000, 20, 100)  # a run makes many small objects that live long: looking through them again and again takes time
    try:
        app()
    except UserError as error:
        print(f"weft: {error}", file=sys.stderr)
        sys.exit(2)
    except WeftError as error:
        print(f"weft: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(141)
    except OSError as error:
        print(f"weft: {error.filename or ''}{': ' if error.filename else ''}{error.strerror or error}", file=sys.stderr)
        sys.exit(2)
