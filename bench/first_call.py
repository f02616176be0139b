"""How soon a cold run asks: seconds from the start of `weft run weave` to its first call, and to the first call that
wants an image.

    python bench/first_call.py [--dialogues 100] [--side 1024]

The dataset is new for every run, with images of about a megabyte; beside it stands the time that reading and checking
all of it takes, which nobody waits for."""

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

IMAGES = 5


def write_data(folder: Path, dialogues: int, side: int) -> Path:
    from PIL import Image

    (folder / "imgs").mkdir(parents=True)
    records = []
    for number in range(dialogues):
        names = [f"imgs/{number}_{at}.png" for at in range(IMAGES)]
        for name in names:
            image = Image.frombytes("RGB", (side // 2, side // 2), os.urandom(3 * (side // 2) ** 2)).resize(
                (side, side), Image.Resampling.NEAREST
            )
            made = io.BytesIO()
            image.save(made, "PNG", compress_level=1)
            (folder / name).write_bytes(made.getvalue())
        chats = []
        for at in range(2, IMAGES + 1):
            chats += [
                {"role": "user", "type": "text", "content": f"Paint the door of Image #{at - 1} green."},
                {
                    "role": "assistant",
                    "type": "image",
                    "content": f"Image #{at}",
                    "key_point": {"Text": "The door is green."},
                },
            ]
        records.append({"idx": number, "domain": "edit", "images": names, "chats": chats})
    (folder / "test.json").write_text(json.dumps(records))
    return folder


class Server(ThreadingHTTPServer):
    daemon_threads = True
    first: dict[str, float] = {}


class Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        now = time.perf_counter()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind = "image" if b'"modalities"' in body else "any"
        Server.first.setdefault("any", now)
        Server.first.setdefault(kind, now)
        said = {
            "choices": [
                {"message": {"role": "assistant", "content": '{"reasoning": "x", "score": 5}'}, "finish_reason": "stop"}
            ]
        }
        data = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=100)
    parser.add_argument("--side", type=int, default=1024)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-first-") as temporary:
        folder = Path(temporary)
        data = write_data(folder / "data", chosen.dialogues, chosen.side)
        size = sum(file.stat().st_size for file in (data / "imgs").iterdir())
        server = Server(("127.0.0.1", 0), Answer)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        words = [
            "--data",
            str(data),
            "--model",
            f"openai-chat/m@{url}",
            "--judge",
            f"openai-chat/j@{url}",
            "--home",
            str(folder / "home"),
        ]
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "weft", "run", "weave", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        process.wait()
        first = {kind: at - began for kind, at in Server.first.items()}
        code = "from pathlib import Path; from weft.store.blobs import Blobs; from weft.benchmarks.weave.data import load; import sys, time; "
        code += "t = time.perf_counter(); load(Path(sys.argv[1]), Blobs(Path(sys.argv[2]))).load_all(); print(time.perf_counter() - t)"
        read = subprocess.run(
            [sys.executable, "-c", code, str(data), str(folder / "other")], capture_output=True, text=True, check=True
        )
    print(f"{chosen.dialogues} dialogues, {chosen.dialogues * IMAGES} images, {size / 1e6:.0f} MB")
    print(f"first call after {first['any']:.2f} s (goal 1 s), first that wants an image after {first['image']:.2f} s")
    print(f"reading and checking all of it takes {float(read.stdout):.1f} s")


if __name__ == "__main__":
    main()
