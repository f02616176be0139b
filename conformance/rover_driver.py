"""Run by the interpreter that has the authors' requirements: makes a folder in the hub's layout, and calls the released
code where it has no script for it.

    table TABLETOP OUT HALF         JSON lines with pictures -> OUT/HALF/*.parquet, through `datasets`, some pictures in
    unusual forms
    list ROOT HALF                  the tasks' ids, as `datasets` reads them
    read SCRIPTS FILE KEY OUT       what the released code reads from each of some replies
"""

import io
import json
import sys
from pathlib import Path

DIMENSIONS = ["science", "culture", "common_sense", "logic"]


def table(tabletop: str, out: str, half: str) -> None:
    from datasets import ClassLabel, Dataset, Features, Value
    from datasets import Image as Picture
    from PIL import Image

    records = [json.loads(line) for line in (Path(tabletop) / f"{half}.jsonl").read_text().splitlines()]
    if half == "ROVER-TG":  # the tabletop has neither of these
        way = "[[3, 4], [20, 30], [50, 60]]"
        records += [
            {**one, "id": f"embodied_{at}", "problem_type": "embodied", "answer": way}
            for at, one in enumerate(records[:6])
        ]
        records += [
            {**one, "id": f"multi-view_{at}", "problem_type": "multi-view", "answer": "left"}
            for at, one in enumerate(records[:6])
        ]
        for one in records:
            one["example_image"] = one["image"] if one["problem_type"] == "embodied" else None
            one["image2"] = one["reasoning_image"] if one["problem_type"] == "multi-view" else None
            one["reasoning_image"] = None if one["problem_type"] == "multi-view" else one["reasoning_image"]
    pictures = {"image", "image2", "target_image", "example_image", "reasoning_image"}

    def unusual(at: int, path: str) -> bytes:
        picture = Image.open(Path(tabletop) / path)
        made = io.BytesIO()
        if at % 5 == 1:
            picture.convert("RGBA").save(made, "PNG")
        elif at % 5 == 2:
            clear = picture.convert("RGBA")
            clear.putalpha(128)
            clear.save(made, "PNG")
        elif at % 5 == 3:
            picture.convert("P").save(made, "PNG")
        elif at % 5 == 4:
            exif = picture.getexif()
            exif[0x0112] = 6
            picture.convert("RGB").save(made, "JPEG", exif=exif)
        else:
            picture.save(made, "PNG")
        return made.getvalue()

    for at, record in enumerate(records):
        for name in pictures & set(record):
            record[name] = {"bytes": unusual(at, record[name]), "path": None} if record[name] else None
        if "dimension" in record:
            record["dimension"] = DIMENSIONS.index(record["dimension"])
    kinds = {name: Picture() if name in pictures else Value("string") for name in records[0]}
    if "dimension" in kinds:
        kinds["dimension"] = ClassLabel(names=DIMENSIONS)
    folder = Path(out) / half
    folder.mkdir(parents=True)
    data = Dataset.from_list(records, features=Features(kinds))
    data.to_parquet(str(folder / "train-00000-of-00001.parquet"))
    about = f"---\nconfigs:\n- config_name: {half}\n  data_files:\n  - split: train\n    path: {half}/*.parquet\n---\n"
    (Path(out) / "README.md").write_text(about)


def tasks(root: str, half: str) -> list[dict]:
    from datasets import load_dataset

    return list(load_dataset(str(root), half)["train"])


def read(scripts: str, file: str, key: str, out: str) -> None:
    sys.path.insert(0, scripts)
    from base_metric import extract_score_and_reason

    texts = json.loads(Path(file).read_text())
    Path(out).write_text(json.dumps([repr(extract_score_and_reason(text, key, ["reasoning"])[0]) for text in texts]))


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "list":
        print(json.dumps([{"id": task["id"]} for task in tasks(*words)]))
    else:
        {"table": table, "read": read}[what](*words)
