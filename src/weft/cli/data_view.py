"""weft data view"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import OpenOption

OPEN_WAIT_S = 3.0  # a dataset that opens later is opened behind its page


def view(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="Which benchmark's format it is in, or weave-100k.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="DATA", help="The dataset's folder.")],
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Port on 127.0.0.1. Default: a free one.")
    ] = 0,
    open: OpenOption = False,
) -> None:
    """Look at a dataset in the browser: dialogues with their images, filters, search.

    Records are read in the background, so a large dataset opens at once. Read-only, on this machine only;
    Ctrl-C ends it.

    Examples:

      weft data view weave data/weave --open

      weft data view weave-100k data/weave-100k --port 8123
    """
    import tempfile

    from weft.benchmarks.data_format import load_format
    from weft.cli.serve_pages import serve_until_interrupted
    from weft.datasets.browsed_images import BrowsedImages
    from weft.datasets.record_index import RecordIndex
    from weft.report.view.data_server import DataViewer
    from weft.workspace import open_blobs

    data_format = load_format(benchmark)
    with tempfile.TemporaryDirectory(prefix="weft-") as scratch:
        images = BrowsedImages(open_blobs(scratch).root)
        index = RecordIndex(data_format, folder, images)
        index.start()
        try:
            index.check_open(OPEN_WAIT_S)
            server = DataViewer(index, images, Path(scratch), str(folder))
            serve_until_interrupted(server, port, "dataset", open_page=open)
        finally:
            index.stop()
