"""A report of IMUG-Bench's size: 3,113 dialogues, 12,034 turns, 6,770 pictures. Time to build, size, memory; then, in a
real browser, time to first paint, how smooth the list scrolls, and what it holds in memory. Needs chromium and
playwright for the second half.

    python bench/report.py [--folder DIR] [--samples 3113] [--side 512]

The run is made up (drawn tables, noise on top, JPEG), and written to a journal as a real one would be. Ratios are
against the same report of a tenth of the dialogues, measured in the same run."""

import argparse
import io
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from weft.benchmarks.imug.classes import CLASS_OF
from weft.benchmarks.imug.facts import ChoiceFacts, PointsFacts
from weft.store.blobs import Blobs
from weft.store.journal import Journal, TurnRecord
from weft.store.manifest import BenchmarkVersion, DatasetVersion, Identity, Manifest, PromptsVersion
from weft.types import Image, Message, Reply, Text, Verdict
from weft_tabletop.make.requests import random_scene
from weft_tabletop.world.scenes import draw

SAMPLES, TURNS, PICTURES = 3113, 12034, 6770


def picture(chance: random.Random, blobs: Blobs, side: int) -> Image:
    import numpy as np
    from PIL import Image as Pil

    pixels = np.asarray(draw(random_scene(chance)).resize((side, side), Pil.Resampling.BICUBIC), dtype=np.int16)
    noise = np.random.default_rng(chance.getrandbits(32)).integers(-6, 7, size=pixels.shape, dtype=np.int16)
    out = io.BytesIO()
    Pil.fromarray(np.clip(pixels + noise, 0, 255).astype(np.uint8)).save(out, "JPEG", quality=80)
    return blobs.put(out.getvalue(), durable=False)


def make_up(home: Path, samples: int, side: int) -> None:
    """A finished run, as the engine would have left it."""
    chance, blobs = random.Random(0), Blobs(home / "blobs")
    turns, pictures = round(TURNS * samples / SAMPLES), round(PICTURES * samples / SAMPLES)
    counts = [
        2 + (at * (turns - 2 * samples) // samples - (at - 1) * (turns - 2 * samples) // samples if at else 0)
        for at in range(samples)
    ]
    counts[0] += turns - sum(counts)
    wants = ["image"] * pictures + ["text"] * (turns - pictures)
    chance.shuffle(wants)
    journal = Journal(home / "journal.sqlite")
    manifest = Manifest(
        weft="benchmark", benchmark=BenchmarkVersion("imug", "1"), dataset=DatasetVersion("imug", "made-up"),
        model=Identity(name="made-up"), judge=Identity(name="made-up"), prompts=PromptsVersion("weft", "made-up"),
        options={"history": "dialogue", "turns": "all"}, option_labels=("dialogue",),
        strategy="none", judge_repeats=1, limit=None, where={},
    )  # fmt: skip
    journal.begin_run("imug-made-up", manifest, [], "imug")
    journal.set_expected("imug-made-up", samples, turns)
    domains, at = list(CLASS_OF), 0
    for number in range(samples):
        domain = domains[number % len(domains)]
        groups, name = (
            {"domain": domain, "task": f"{domain.lower()}_{number % 5}", "class": CLASS_OF[domain]},
            f"{domain}/task/{number}",
        )
        seen: list[Message] = [Message("system", (Text("Use everything said and shown in the dialogue so far. " * 8),))]
        for turn in range(counts[number]):
            want, at = wants[at], at + 1
            asked = Message(
                "user", (Text(f"Request {turn + 1} of dialogue {number}: change the most recent picture. " * 3),)
            )
            seen.append(asked)
            said = picture(chance, blobs, side) if want == "image" else Text(chance.choice("ABCD"))
            reply = Reply("answered", (said,))
            about = msgspec.json.encode(
                {"ask": asked.parts, "reference": (), "gold": {"points": ["One.", "Two.", "Three."]}}
            ).decode()
            journal.put_turn(
                "imug-made-up",
                TurnRecord(name, turn, number, groups, want, msgspec.json.encode(seen).decode(), reply, about),
            )
            value, metric = chance.random(), "points" if want == "image" else "choice"
            detail = PointsFacts((round(5 * value),)) if want == "image" else ChoiceFacts("A", "B")
            journal.put_verdict(
                "imug-made-up", Verdict(name, turn, metric, value, "A reason of the usual length. " * 6, detail=detail)
            )
            seen.append(Message("assistant", (said,)))
    journal.end_run("imug-made-up", "finished")
    journal.close()


def build(home: Path, out: Path) -> dict[str, float]:
    shutil.rmtree(out, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "weft", "report", "last", "--home", home, "--out", out],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - began
    files = [file.stat().st_size for file in out.rglob("*") if file.is_file()]
    pages = sum(file.stat().st_size for file in out.rglob("*.html"))
    peak = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024
    return {"seconds": seconds, "files": len(files), "mb": sum(files) / 1e6, "pages_mb": pages / 1e6, "peak_mb": peak}


SCROLL = """() => new Promise(done => {
  const box = document.getElementById("rows"), gaps = []; let last = performance.now(), steps = 0;
  const step = now => {
    gaps.push(now - last); last = now; box.scrollTop += 400;
    if (++steps < 240) requestAnimationFrame(step); else done(gaps.slice(2));
  };
  requestAnimationFrame(step); })"""


def look(out: Path) -> dict[str, float]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        found: dict[str, float] = {}
        for name in ("index", "dialogues"):
            page.goto((out / f"{name}.html").absolute().as_uri())
            page.wait_for_timeout(500)
            found[f"{name}_paint_ms"] = page.evaluate(
                "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            )
        gaps = sorted(page.evaluate(SCROLL))
        found |= {"frame_median_ms": gaps[len(gaps) // 2], "frame_95_ms": gaps[int(0.95 * len(gaps))]}
        found["rows_in_page"] = page.locator(".row").count()
        began = time.perf_counter()
        page.locator(".row").nth(3).click()
        page.frame_locator("iframe").locator(".turn").first.wait_for()
        found["open_ms"] = (time.perf_counter() - began) * 1000
        began = time.perf_counter()
        page.locator("[data-filter='group:domain']").select_option("Physics")
        found["filter_ms"] = (time.perf_counter() - began) * 1000
        found["heap_mb"] = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
        browser.close()
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--side", type=int, default=512)
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="weft-report-"))
    results: dict[str, dict[str, float]] = {}
    for name, samples in (("a tenth", chosen.samples // 10), ("whole", chosen.samples)):
        home = folder / name.replace(" ", "-")
        if not home.exists():
            make_up(home, samples, chosen.side)
        results[name] = build(home, folder / f"report-{home.name}")
        results[name] |= look(folder / f"report-{home.name}")
        print(
            f"{name} ({samples} dialogues): "
            + json.dumps({key: round(value, 1) for key, value in results[name].items()}),
            flush=True,
        )
    small, whole = results["a tenth"], results["whole"]
    for key in ("seconds", "peak_mb", "index_paint_ms", "dialogues_paint_ms", "frame_95_ms", "heap_mb"):
        print(f"{key}: {whole[key]:.1f}, {whole[key] / small[key]:.2f} times that of a tenth of the dialogues")
    if chosen.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
