"""A server on loopback that a command runs until it is interrupted."""

from typing import TYPE_CHECKING

from weft.cli.terminal import open_in_browser, say

if TYPE_CHECKING:
    from weft.report.view.loopback import LoopbackServer


def serve_until_interrupted(server: "LoopbackServer", port: int, subject: str, *, open_page: bool) -> None:
    """Print the server's address and serve until Ctrl-C. `subject`: what whoever has the address can read.

    Raises UserError if the port cannot be used."""
    import asyncio
    import signal

    from weft.errors import UserError

    async def serve() -> None:
        try:
            runner, address = await server.start(port)
        except OSError as error:
            raise UserError(f"port {port} cannot be used: {error.strerror}") from None
        say(f"{address}\nonly for you: whoever has this address can read the {subject}. Ctrl-C ends it.", flush=True)
        if open_page:
            open_in_browser(address)
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):  # handled even if the parent process ignores them
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        try:
            await stopped.wait()
        finally:
            await runner.cleanup()

    asyncio.run(serve())
