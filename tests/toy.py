"""A small WEAVE dataset of our own, in the official shape."""

import json
from pathlib import Path
from typing import Any

from server import drawn


def toy_records() -> list[dict[str, Any]]:
    """Dialogues in the official shape: out-of-order mentions, an output before a lower number, a question between, all
    key kinds."""

    def user(text: str) -> dict[str, Any]:
        return {"role": "user", "type": "text", "content": text}

    def image(number: int, **points: str) -> dict[str, Any]:
        keys = {name.replace("_", " #") if name != "Text" else name: text for name, text in points.items()}
        return {"role": "assistant", "type": "image", "content": f"Image #{number}", "key_point": keys}

    def text(answer: str) -> dict[str, Any]:
        return {"role": "assistant", "type": "text", "content": answer, "key_point": None}

    return [
        {
            "idx": 7,
            "domain": "recall",
            "images": ["imgs/toy_1.png", "imgs/toy_2.png", "imgs/toy_3.png"],
            "chats": [
                user("Paint the door of Image #1 green."),
                image(2, GT_1="Only the door of <image> is green."),
                user("How many windows does Image #2 have?"),
                text("Four."),
                user("Use Image #2 but restore the door of Image #1."),
                image(3, Image_2="House equals <image>.", GT_1="Door equals <image>.", Text="No new objects."),
            ],
        },
        {
            "idx": 9,
            "domain": "fusion",
            "images": [f"imgs/mix_{n}.png" for n in (1, 2, 3, 4, 5)],
            "chats": [
                user("Put the hat of Image #3 on the cat of Image #1."),
                image(5, GT_1="The cat of <image>.", GT_3="The hat of <image>."),
                user("Place the cat of Image #5 in Image #2, as big as in Image #1."),
                image(4, Image_5="The cat of <image>.", GT_2="The place of <image>."),
            ],
        },
        {
            "idx": 12,
            "domain": "chess_game",
            "images": ["imgs/board_0.png", "imgs/board_1.png"],
            "chats": [
                user("Draw a chess board."),
                image(1, Text="A chess board."),
                user("Move a pawn in Image #1."),
                image(2, Image_1="One pawn differs from <image>."),
                user("Which of Image #2 and Image #1 came first?"),
                text("Image #1."),
            ],
        },
        {
            "idx": 15,
            "domain": "optics",
            "images": ["imgs/light_1.png", "imgs/light_2.png"],
            "chats": [user("What does Image #1 show?"), text("A prism."), user("And Image #2?"), text("A lens.")],
        },
    ]


def more_records(copies: int) -> list[dict[str, Any]]:
    """The same dialogues again and again, each a little different."""
    records: list[dict[str, Any]] = []
    for copy in range(copies):
        for record in toy_records():
            record["idx"] += 100 * copy
            record["chats"][0]["content"] += f" (version {copy})"
            records.append(record)
    return records


def write_weave(folder: Path, records: list[dict[str, Any]]) -> Path:
    """The records with a picture for each name."""
    (folder / "test" / "imgs").mkdir(parents=True, exist_ok=True)
    for record in records:
        for name in record["images"]:
            path = folder / "test" / name
            if ".." not in name and not name.startswith("/") and not path.exists():
                path.write_bytes(drawn(name, 32))
    (folder / "test" / "test.json").write_text(json.dumps(records))
    return folder


def write_opening(folder: Path, items: int = 1) -> Path:
    """An OpenING dataset of our own: one turn an item, a text with an image in, two out."""
    (folder / "images" / "Story").mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    for item in range(1, items + 1):
        for name in (f"{item}-i-1", f"{item}-o-1"):
            (folder / "images" / "Story" / f"{name}.jpg").write_bytes(drawn(name, 40))
        asked = [{"text": "<BEGIN> Go on. <image>", "image": f"./images/Story/{item}-i-1.jpg"}]
        answer = [{"text": "One <image>", "image": f"./images/Story/{item}-o-1.jpg"}] * 2
        names = {
            "meta_task_id": "1",
            "meta_task_name": "Telling",
            "subtask_id": "1",
            "subtask_name": "Story",
            "data_id": str(item),
        }
        conversations = [{"input": asked}, {"output": answer}]
        lines.append(json.dumps({"total_uid": f"0101{item:03}", **names, "conversations": conversations}) + "\n")
    (folder / "test_data.jsonl").write_text("".join(lines))
    return folder
