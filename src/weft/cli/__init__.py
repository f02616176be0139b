"""The command line: one file a command, no logic. `main` turns user mistakes into one line and exit code 2."""

import gc
import logging
import sys

USER_MISTAKE = 2
FAILURE = 1
BROKEN_PIPE = 141
NO_MEMORY = "there is not enough memory for this; what was stored before is kept: run the same command again"
NO_THREAD = "can't start new thread"  # what Python says where there is no memory for one


def main() -> None:
    """Run the command in `sys.argv`. Ends the process, whatever a model left running in it."""
    from weft.cli.ending import end_process, guard_exit, read_exit_code

    guard_exit()
    code = FAILURE
    try:
        _run_command()
    except SystemExit as error:
        code = read_exit_code(error.code)
        raise
    finally:
        end_process(code)


def _run_command() -> None:
    """Run the command. Raises SystemExit; a user's mistake never shows a traceback."""
    from weft.cli.app import app
    from weft.cli.terminal import complain
    from weft.errors import UserError, WeftError

    gc.set_threshold(50_000, 20, 100)  # a run makes many small, long-lived objects: frequent collections cost time
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # its warnings about lost connections need no action
    try:
        _check_printable(sys.argv[1:])
        app()
    except UserError as error:
        complain(error)
        sys.exit(USER_MISTAKE)
    except WeftError as error:
        complain(error)
        sys.exit(FAILURE)
    except MemoryError:
        complain(NO_MEMORY)
        sys.exit(FAILURE)
    except RuntimeError as error:
        if str(error) != NO_THREAD:
            raise
        complain(NO_MEMORY)
        sys.exit(FAILURE)
    except BrokenPipeError:
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        reason = error.strerror or error
        if error.filename:
            complain(f"{error.filename}: {reason}")
        else:
            complain(reason)
        sys.exit(USER_MISTAKE)


def _check_printable(words: list[str]) -> None:
    """Raise UserError for a word that is not UTF-8, or that has control characters other than newline and tab."""
    from weft.errors import UserError

    for word in words:
        if not word.isprintable() and "\n" not in word and "\t" not in word:
            readable = word.encode("utf-8", "replace").decode()
            raise UserError(f"{readable!r}: this is not UTF-8, or has a character that cannot be printed")
