"""weft view"""

from typing import Annotated

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OpenOption, OwnBenchmarkOption


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
    from weft.cli.serve_pages import serve_until_interrupted
    from weft.report.view.server import Viewer

    serve_until_interrupted(Viewer(home, benchmarks=benchmark or ()), port, "journal", open_page=open)
