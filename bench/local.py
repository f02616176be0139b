"""Local models inside weft beside bare loops of their libraries, on a GPU: random weights of full size cost what
trained ones cost.

    python bench/local.py janus      Janus-Pro-1B's shape: pictures a second, bare by batch, and inside `weft run weave`
    python bench/local.py served     the same behind `weft serve`: in one process, and on Ray
    python bench/local.py diffusers  FLUX.1 Kontext's shape: pictures a second, bare and inside weft

`--small` takes tiny shapes, to see on any machine that it runs. Prints figures and ratios, and writes them to --out as
JSON."""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests" / "local"), str(HERE.parent / "tests")]

TEXT = {
    "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 5632,
    "vocab_size": 102400, "max_position_embeddings": 16384, "initializer_range": 0.02,
}  # fmt: skip
VISION = {
    "image_size": 384, "patch_size": 16, "num_image_tokens": 576, "hidden_size": 1024, "projection_dim": 2048, "num_hidden_layers": 24,
    "num_attention_heads": 16, "mlp_ratio": 4, "initializer_range": 0.02,
}  # fmt: skip
PICTURES = {
    "embed_dim": 8, "num_embeddings": 16384, "latent_channels": 256, "base_channels": 128, "channel_multiplier": [1, 1, 2, 2, 4],
    "num_res_blocks": 2, "projection_dim": 2048, "image_token_embed_dim": 2048, "initializer_range": 0.02,
}  # fmt: skip
FOUND: dict[str, object] = {}
BRIEF = "WEFT_BRIEF" in os.environ  # at the largest batch alone


def say(name: str, value: object) -> None:
    FOUND[name] = value
    print(f"{name}: {value}", flush=True)


def janus_folder(place: Path, small: bool) -> Path:
    import tiny_models
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    sizes = (
        {}
        if small
        else {"text": TEXT, "vision": VISION, "pictures": PICTURES, "device": device, "dtype": torch.bfloat16}
    )
    return tiny_models.make_janus(place, **sizes)


class Watch:
    """The share of time in which the GPU had something to do, as nvidia-smi tells it."""

    def __enter__(self):
        self.seen, self._over = [], threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join(3)

    def _look(self):
        while not self._over.wait(0.5):
            with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
                told = subprocess.run(
                    ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"],
                    capture_output=True,
                    text=True,
                    timeout=5,
                )
                self.seen.append(int(told.stdout.split()[0]))

    @property
    def mean(self):
        return round(sum(self.seen) / len(self.seen), 1) if self.seen else None


def peak() -> float:
    import torch

    return round(torch.cuda.max_memory_allocated() / 2**30, 1) if torch.cuda.is_available() else 0.0


def fresh() -> None:
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def bare_janus(folder: Path, batches: list[int], small: bool) -> float:
    """The library's own loop, with a cache as long as it must be; what it makes a second at its best batch."""
    import torch
    import transformers

    from weft.models.local.run.processors import load_processor

    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    model = transformers.JanusForConditionalGeneration.from_pretrained(folder, dtype=dtype).to(device).eval()
    processor = load_processor(folder)
    best = 0.0
    for batch in batches:
        fresh()
        texts = [
            f"<|User|>: A picture of a table with {number} things on it\n\n<|Assistant|>:" for number in range(batch)
        ]
        inputs = processor(text=texts, generation_mode="image", padding=True, return_tensors="pt").to(device)
        model._previous_max_cache_length = -1
        began = time.monotonic()
        with torch.inference_mode():
            made = model.generate(**inputs, generation_mode="image", do_sample=True, guidance_scale=5.0)
            pixels = torch.cat([model.decode_image_tokens(rows) for rows in made.split(16)])
            pixels.float().cpu()
        took = time.monotonic() - began
        say(f"bare, batch {batch}: pictures/s", round(batch / took, 3))
        say(f"bare, batch {batch}: GiB", peak())
        best = max(best, batch / took)
    del model
    fresh()
    return best


async def in_weft(model, data: Path, home: Path, judge: str = "constant/10", **options):
    """A run whose model is loaded already. Gives pictures, seconds, and where the model and the run stood at the
    end."""
    from weft.evaluation.config import RunConfig
    from weft.evaluation.session import open_run

    job = RunConfig(benchmark="weave", data=data, model=model, judge=judge, home=home, **options)
    began = time.monotonic()
    async with open_run(job) as session:
        await session.run()
        took = time.monotonic() - began
        pictures = sum(len(turn.reply.images) for turn in session.journal.turns(session.run_id))
        return pictures, took, session.endpoints["model"].status_line, session.halt.reason


def dataset(place: Path, samples: int) -> Path:
    from weft.cli import main

    out = place / "tables"
    with contextlib.suppress(SystemExit):
        sys.argv = ["weft", "data", "make", "tabletop-weave", "--samples", str(samples), "--out", str(out)]
        main()
    return out


def janus(place: Path, small: bool, samples: int) -> None:
    from weft.models.registry import resolve_endpoint
    from weft.store.blobs import Blobs

    began = time.monotonic()
    folder = place / "janus" if (place / "janus").exists() else janus_folder(place / "janus", small)
    data = dataset(place, samples)
    say("made in s", round(time.monotonic() - began, 1))
    best = bare_janus(folder, [1, 2] if small else ([64] if BRIEF else [1, 16, 64]), small)
    for batch in [2] if small else ([64] if BRIEF else [1, 64]):
        home = place / f"home-{batch}"
        fresh()
        options = {"batch": str(batch), "max_tokens": "64"}
        endpoint = resolve_endpoint(f"hf/{folder}", Blobs(home / "blobs"), options)
        loading = time.monotonic()
        asyncio.run(one(endpoint, data, home, batch, best, loading, limit=1 if batch == 1 and not small else None))


async def one(
    endpoint, data: Path, home: Path, batch: int, best: float, loading: float, limit: int | None = None
) -> None:
    await endpoint.load()
    from weft.types import Message, Request, Text

    await asyncio.gather(
        *(endpoint.send((Message("user", (Text("warm"),)),), Request("image", draw=at)) for at in range(batch))
    )
    endpoint._queue.counts = type(endpoint.batch_counts)()
    say(f"weft, batch {batch}: loaded in s", round(time.monotonic() - loading, 1))
    with Watch() as watch:
        pictures, took, standing, reason = await in_weft(endpoint, data, home, limit=limit)
    busy = endpoint.batch_counts.seconds
    say(f"weft run weave, batch {batch}: pictures", pictures)
    say(f"weft run weave, batch {batch}: pictures/s", round(pictures / took, 3))
    say(f"weft run weave, batch {batch}: share of time at work", round(busy / took, 3))
    say(f"weft run weave, batch {batch}: to the best bare loop", round(pictures / took / best, 3))
    say(f"weft run weave, batch {batch}: GiB", peak())
    say(f"weft run weave, batch {batch}: GPU utilisation %", watch.mean)
    say(f"weft run weave, batch {batch}: standing", standing)
    if reason:
        say("ended early", str(reason))


def served(place: Path, small: bool, samples: int) -> None:
    folder = place / "janus"
    if not folder.exists():
        janus_folder(folder, small)
    data = dataset(place, samples)
    ways = {"one process": [], "Ray, 1 replica": ["--replicas", "1", "--gpus-each", "0" if small else "1"]}
    if small:
        ways["Ray, 2 replicas"] = ["--replicas", "2", "--gpus-each", "0"]
    else:
        ways["Ray, 2 replicas on one GPU"] = ["--replicas", "2", "--gpus-each", "0.5"]
    for way, more in ways.items():
        home = place / f"home-{way.replace(' ', '-').replace(',', '')}"
        opts = ["--model-opt", f"batch={2 if small else 64}", "--model-opt", "max_tokens=64"]
        command = [
            sys.executable,
            "-m",
            "weft",
            "serve",
            f"hf/{folder}",
            "--port",
            "0",
            "--home",
            str(home),
            *opts,
            *more,
        ]
        began = time.monotonic()
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().strip()
            if not url:
                say(f"served, {way}", "did not start")
                continue
            say(f"served, {way}: ready in s", round(time.monotonic() - began, 1))
            asyncio.run(in_weft(f"served/janus@{url}", data, place / f"{home.name}-warm", limit=1))
            with Watch() as watch:
                pictures, took, _, reason = asyncio.run(in_weft(f"served/janus@{url}", data, home))
            say(f"served, {way}: pictures/s", round(pictures / took, 3))
            say(f"served, {way}: GPU utilisation %", watch.mean)
            if reason:
                say(f"served, {way}: ended early", str(reason))
        finally:
            server.terminate()
            server.wait(30)


def diffusers_(place: Path, small: bool, samples: int) -> None:
    import diffusers
    import tiny_models
    import torch
    import transformers
    from PIL import Image

    from weft.models.registry import resolve_endpoint
    from weft.store.blobs import Blobs
    from weft.types import Image as Picture
    from weft.types import Message, Request, Text

    began, folder, steps = time.monotonic(), place / "kontext", 2 if small else 10
    parts = {}
    if not small:
        torch.set_default_dtype(torch.bfloat16)
        with torch.device("cuda"):
            parts["transformer"] = diffusers.FluxTransformer2DModel(
                patch_size=1, in_channels=64, num_layers=19, num_single_layers=38, attention_head_dim=128, num_attention_heads=24,
                joint_attention_dim=4096, pooled_projection_dim=32, guidance_embeds=True, axes_dims_rope=(16, 56, 56),
            )  # fmt: skip
            letters = 4 + 94
            parts["text_encoder_2"] = transformers.T5EncoderModel(
                transformers.T5Config(
                    vocab_size=letters,
                    d_model=4096,
                    d_kv=64,
                    d_ff=10240,
                    num_layers=24,
                    num_heads=64,
                    feed_forward_proj="gated-gelu",
                )
            )
            parts["vae"] = diffusers.AutoencoderKL(
                block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=16, sample_size=1024,
                down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
                use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.1159, scaling_factor=0.3611,
            )  # fmt: skip
        torch.set_default_dtype(torch.float32)
    tiny_models.flux("FluxKontextPipeline", folder, **parts)
    parts.clear()
    fresh()
    say("made in s", round(time.monotonic() - began, 1))
    home, device = place / "home", "cuda" if torch.cuda.is_available() else "cpu"
    pictures = [Image.effect_noise((512, 512), 50 + number).convert("RGB") for number in range(samples)]
    size = {"width": 64, "height": 64, "max_area": 64 * 64} if small else {"width": 1024, "height": 1024}
    pipe = diffusers.DiffusionPipeline.from_pretrained(
        folder, dtype=torch.bfloat16 if device == "cuda" else torch.float32
    ).to(device)
    pipe.set_progress_bar_config(disable=True)

    def bare(pipe, many: int) -> float:
        began = time.monotonic()
        for number in range(many):
            chance = torch.Generator().manual_seed(0)
            made = pipe(
                image=pictures[number], prompt=f"Make it {number}", num_inference_steps=steps, generator=chance, **size
            ).images[0]
            made.save(place / f"{number}.png")
        return many / (time.monotonic() - began)

    with torch.inference_mode():
        bare(pipe, 1)
        with Watch() as watch:
            best = bare(pipe, samples)
    say("bare diffusers: pictures/s", round(best, 3))
    say("bare diffusers: GPU utilisation %", watch.mean)
    say("bare diffusers: GiB", peak())
    del pipe
    fresh()
    blobs = Blobs(home / "blobs")
    options = {"steps": str(steps), "width": str(size["width"]), "height": str(size["height"])}
    began = time.monotonic()
    endpoint = resolve_endpoint(f"diffusers/{folder}", blobs, options)
    say("weft diffusers: known in s", round(time.monotonic() - began, 1))

    async def go() -> float:
        from weft.calls.budget import Budget
        from weft.calls.caller import Caller
        from weft.store.journal import Journal

        await endpoint.load()
        say("weft diffusers: loaded in s", round(time.monotonic() - began, 1))
        journal = Journal(home / "journal.sqlite")
        caller = Caller(endpoint, role="model", journal=journal, budget=Budget(None), blobs=blobs)
        shown: list[Picture] = [blobs.put_pil(picture) for picture in pictures]
        asked = [(Message("user", (picture, Text(f"Make it {number}"))),) for number, picture in enumerate(shown)]
        await caller.reply(asked[0], Request("image", draw=1))
        start = time.monotonic()
        replies = await asyncio.gather(*(caller.reply(one, Request("image")) for one in asked))
        took = time.monotonic() - start
        assert all(reply.outcome == "answered" for reply in replies), replies[0].reason
        await endpoint.close()
        journal.close()
        return len(replies) / took

    with Watch() as watch:
        ours = asyncio.run(go())
    say("weft diffusers: pictures/s", round(ours, 3))
    say("weft diffusers: to the bare loop", round(ours / best, 3))
    say("weft diffusers: GPU utilisation %", watch.mean)
    say("weft diffusers: GiB", peak())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["janus", "served", "diffusers"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--place", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with tempfile.TemporaryDirectory() as made:
        place = given.place or Path(made)
        place.mkdir(parents=True, exist_ok=True)
        usual = {
            "janus": 4 if given.small else 192,
            "served": 4 if given.small else 128,
            "diffusers": 3 if given.small else 10,
        }
        {"janus": janus, "served": served, "diffusers": diffusers_}[given.part](
            place, given.small, given.samples or usual[given.part]
        )
    if given.out:
        given.out.write_text(json.dumps(FOUND, indent=1))


if __name__ == "__main__":
    main()
