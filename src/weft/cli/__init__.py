"""The command line: one file a command, no logic. `main` turns user mistakes into one line and exit code 2."""

import gc
import logging
import sys


def main() -> None:
    from weft.cli.app import app
    from weft.cli.terminal import complain
    from weft.errors import UserError, WeftError

    # a run makes many small objects that live long: looking through them again and again takes time
    gc.set_threshold(50_000, 20, 100)
    # what it would say of a lost connection is nothing to act on
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    try:
        if strange := next(
            (word for word in sys.argv[1:] if not word.isprintable() and "\n" not in word and "\t" not in word), None
        ):
            raise UserError(
                f"{strange.encode('utf-8', 'replace').decode()!r}: this is not UTF-8, or has a character that cannot be shown"
            )
        app()
    except UserError as error:
        complain(error)
        sys.exit(2)
    except WeftError as error:
        complain(error)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(141)
    except OSError as error:
        complain(f"{error.filename or ''}{': ' if error.filename else ''}{error.strerror or error}")
        sys.exit(2)
