"""How well the OCR witness reads, and what it does for a judge that cannot (extra `ocr`).

    python bench/ocr.py [--pictures 20]

Maps, flowcharts, forms, panels and large pages with few words are drawn with random words, in English and, where the
machine has a Chinese font (`fonts-wqy-zenhei`, or Noto's), in Chinese: as drawn, at half the size, and as JPEG.
`found`: the share of the words in a picture that are read letter by letter. `made up`: the share of words that are not
in it and are said to be. Then the same pictures are outputs of a whole run of PlanViz, whose key points are words, half
of them there. They are judged by judges with bad eyes, which see every picture at a fourth or a sixth of its size and
read what they can, alone and with the witness; and by `--judge ocr`. Printed: how many points are decided rightly, and
how far Cor is off."""

import argparse
import io
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

import weft
from weft.benchmarks.planviz.drawings import draw_flowchart, draw_form, draw_park, draw_settings
from weft.benchmarks.planviz.facts import read_plan_facts
from weft.benchmarks.planviz.files import PlanVizTask, write_tasks
from weft.judges.ocr import contains_phrase, find_checkable_phrases, read_lines
from weft.store.blobs import Blobs
from weft.types import Text

ENGLISH = """
Gate Lake Museum Harbour Station Library Market Bridge Castle Garden Theatre Fountain Bakery Chapel Tower Square Zoo Cinema Stadium Pier
Password Settings Bluetooth Language Privacy Account Payment Delivery Address Search Download Upload Share Archive Invoice Receipt Refund
Approve Reject Review Submit Confirm Schedule Meeting Agenda Minutes Budget Deadline Contract Interview Training Inspection Warehouse
"""
CHINESE = """
大门 湖泊 博物馆 港口 车站 图书馆 市场 桥梁 城堡 花园 剧院 喷泉 面包店 教堂 广场 动物园 电影院 体育场 码头 酒店 密码 设置 蓝牙 语言 隐私
账户 付款 配送 地址 搜索 下载 上传 分享 归档 发票 收据 退款 批准 拒绝 审核 提交 确认 日程 会议 议程 纪要 预算 截止日期 合同 面试 培训 检查
仓库 登录 注册 打印 保存 取消 返回 帮助
"""
FONTS = ("/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc", "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")
SPOTS = [(90, 430), (300, 250), (560, 110), (520, 400), (110, 130), (380, 60)]
EYES = (4, 6)  # by how much judges with bad eyes see pictures smaller


def words_of(text: str) -> list[str]:
    return text.split()


def pictures(
    words: list[str], font: Any, count: int, chance: random.Random
) -> Iterator[tuple[str, Image.Image, list[str]]]:
    """Kind, picture, and the words in it."""
    for _ in range(count):
        some = chance.sample(words, 6)
        paths = [SPOTS[:3], SPOTS[2:5], [SPOTS[0], SPOTS[3], SPOTS[5]]]
        yield "map", draw_park(dict(zip(some, SPOTS, strict=True)), paths, paths[0], font), some
        some = chance.sample(words, 5)
        yield "flowchart", draw_flowchart(some, font), some
        some = chance.sample(words, 5)
        yield "panel", draw_settings(some[0], {name: chance.random() < 0.5 for name in some[1:]}, font), some
        some = chance.sample(words, 3)
        yield "page", sparse(some, font, chance), some
        some = chance.sample(words, 5)
        yield "form", draw_form(some[0], some[1:4], some[4], font), some


def sparse(words: list[str], font: Any, chance: random.Random) -> Image.Image:
    """A large page with few words."""
    page = Image.new("RGB", chance.choice([(900, 300), (1280, 800), (1920, 1080), (2048, 2048)]), "white")
    for at, word in enumerate(words):
        place = (chance.randrange(page.width // 2), page.height * (at + 1) // 5)
        ImageDraw.Draw(page).text(place, word, font=font(chance.choice((20, 28, 36))), fill="#222222")
    return page


def shapes() -> dict[str, Callable[[Image.Image], Image.Image]]:
    def jpeg(picture: Image.Image) -> Image.Image:
        out = io.BytesIO()
        picture.save(out, "JPEG", quality=60)
        return Image.open(io.BytesIO(out.getvalue()))

    return {
        "as drawn": lambda one: one,
        "half size": lambda one: one.resize((one.width // 2, one.height // 2)),
        "JPEG, 60": jpeg,
    }


def reading(
    language: str, words: list[str], font: Any, count: int, blobs: Blobs
) -> list[tuple[str, Image.Image, list[str]]]:
    made = list(pictures(words, font, count, random.Random(f"ocr {language}")))
    for shape, change in shapes().items():
        found: dict[str, list[bool]] = {}
        wrong: dict[str, list[bool]] = {}
        began = time.perf_counter()
        for kind, picture, there in made:
            lines = [line.text for line in read_lines(blobs.put_pil(change(picture)), blobs)]
            found.setdefault(kind, []).extend(contains_phrase(word, lines) for word in there)
            wrong.setdefault(kind, []).extend(contains_phrase(word, lines) for word in words if word not in there)
        seconds = (time.perf_counter() - began) / len(made)
        shares = "  ".join(f"{kind} {100 * sum(some) / len(some):5.1f}" for kind, some in found.items())
        total, false = (
            [one for some in found.values() for one in some],
            [one for some in wrong.values() for one in some],
        )
        told = f"all {100 * sum(total) / len(total):5.1f} of {len(total)}   made up {100 * sum(false) / len(false):.2f} of {len(false)}"
        print(f"{language:8} {shape:9}  {shares}   {told}   {seconds:.2f} s a picture")
    return made


class BadEyes:
    """Reads a picture at a part of its size, and believes a witness."""

    version = "1"

    def __init__(self, home: Path, eyes: int) -> None:
        self.name, self._eyes, self._blobs = f"bad eyes {eyes}", eyes, Blobs(home / "eyes" / "blobs")

    def __call__(self, messages: Any, want: str, question: Any) -> dict[str, Any]:
        if question.metrics != ("correctness",):
            return {"explanation": "not asked here", question.value: 5}
        picture = next(part for _, parts in messages for part in parts if not isinstance(part, str))
        small = picture.resize((picture.width // self._eyes, picture.height // self._eyes), Image.Resampling.LANCZOS)
        seen = [line.text for line in read_lines(self._blobs.put_pil(small), self._blobs)]
        seen += [part.text for part in question.material.get("words", ()) if isinstance(part, Text)]
        points = [part.text for part in question.material["points"]]
        met = [all(contains_phrase(word, seen) for word in find_checkable_phrases(point)) for point in points]
        return {
            "points": [
                {"point": at, "evidence": "as I see it", "satisfied": one} for at, one in enumerate(met, start=1)
            ]
        }


def judging(language: str, made: list[tuple[str, Image.Image, list[str]]], words: list[str], work: Path) -> None:
    """Half of each task's points are true."""
    chance = random.Random(f"points {language}")
    tasks: list[PlanVizTask] = []
    truth: dict[str, list[bool]] = {}
    outputs = work / "outputs"
    outputs.mkdir(parents=True)
    for at, (kind, picture, there) in enumerate(made):
        absent = chance.sample([one for one in words if one not in there], len(there))
        asked = [(word, word in there) for word in (*there, *absent)]
        chance.shuffle(asked)
        name = f"ui_gen-{kind}-{at}"
        truth[name] = [right for _, right in asked]
        tasks.append(
            PlanVizTask(
                "ui",
                "gen",
                f"Draw picture {at}.",
                [f'The text "{word}" is shown' for word, _ in asked],
                name=f"{kind}-{at}",
            )
        )
        picture.save(outputs / f"{name}.png")
    write_tasks(work / "data", tasks)
    ways: list[tuple[str, dict[str, Any]]] = []
    for eyes in EYES:
        judge = BadEyes(work, eyes)
        ways += [
            (f"sees at 1/{eyes}, alone", {"judge": judge}),
            (f"sees at 1/{eyes}, witness", {"judge": judge, "witness": "ocr"}),
        ]
    for told, options in (*ways, ("--judge ocr", {"judge": "ocr"})):
        run = weft.evaluate("planviz", data=work / "data", model=f"folder/{outputs}", home=work / "home", **options)
        cor = [one for one in run.verdicts if one.metric == "correctness"]
        assert len(cor) == len(truth) and all(one.value is not None for one in cor)
        right = [
            met == due for one in cor for met, due in zip(read_plan_facts(one).points, truth[one.sample], strict=True)
        ]
        off = [abs((one.value or 0.0) - sum(truth[one.sample]) / len(truth[one.sample])) for one in cor]
        shares = f"points right {100 * sum(right) / len(right):5.1f} of {len(right)}   Cor off by {sum(off) / len(off):.3f} on average"
        print(f"{language:8} {told:25} {shares}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=20, help="of each kind")
    args = parser.parse_args()
    chinese = next((path for path in FONTS if Path(path).is_file()), None)
    with tempfile.TemporaryDirectory(prefix="ocr-") as folder:
        blobs = Blobs(Path(folder) / "blobs")
        languages: dict[str, tuple[list[str], Any]] = {
            "English": (words_of(ENGLISH), lambda size: ImageFont.load_default(size))
        }
        if chinese:
            languages["Chinese"] = (words_of(CHINESE), lambda size: ImageFont.truetype(chinese, size))
        else:
            print("no Chinese font here: apt-get install fonts-wqy-zenhei")
        made = {name: reading(name, words, font, args.pictures, blobs) for name, (words, font) in languages.items()}
        print()
        for name, (words, _) in languages.items():
            judging(name, made[name], words, Path(folder) / name)


if __name__ == "__main__":
    main()
