"""weft view"""

from typing import Annotated

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OpenOption, OwnBenchmarkOption
from weft.cli.terminal import open_in_browser, say


def view(
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Port on 127.0.0.1. Default: a free one.")
    ] = 0,
    open: OpenOption = False,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Browse all runs in the browser, live while one is in progress.

    Read-only, on this machine only; Ctrl-C ends it.

    Examples:

      weft view --open

      weft view --home runs/.weft --port 8123
    """
    import asyncio
    import signal

    from weft.errors import UserError
    from weft.report.view.server import Viewer

    async def serve() -> None:
        try:
            runner, address = await Viewer(home, benchmarks=benchmark or ()).start(port)
        except OSError as error:
            raise UserError(f"port {port} cannot be used: {error.strerror}") from None
        say(f"{address}\nonly for you: whoever has this address can read the journal. Ctrl-C ends it.", flush=True)
        if open:
            open_in_browser(address)
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):  # handled even if the parent process ignores them
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        try:
            await stopped.wait()
        finally:
            await runner.cleanup()

    asyncio.run(serve())
