"""weft view"""

from typing import Annotated

import typer

from weft.cli import options as o
from weft.cli.terminal import say


def view(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen on 127.0.0.1. Default: a free port.")
    ] = 0,
    open: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    benchmark: o.OwnBenchmark = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Every run of the journal in the browser, live while one goes on. Read-only, on this machine alone; Ctrl-C ends
    it.

    Examples:

      weft view --open

      weft view --home runs/.weft --port 8123
    """
    import asyncio
    import signal
    import webbrowser

    from weft.errors import UserError
    from weft.report.view.server import Viewer

    async def serve() -> None:
        try:
            runner, address = await Viewer(home, benchmarks=benchmark or ()).start(port)
        except OSError as error:
            raise UserError(f"port {port} cannot be used: {error.strerror}") from None
        say(f"{address}\nfor you alone: whoever has this address can read the journal. Ctrl-C ends it.", flush=True)
        if open:
            webbrowser.open(address)
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):  # also where whoever started it ignores them
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        try:
            await stopped.wait()
        finally:
            await runner.cleanup()

    asyncio.run(serve())
