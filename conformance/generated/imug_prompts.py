"""Stand-ins for IMUG-Bench's texts. Its scripts assemble their questions in code, so a stand-in for the checkout is code,
too, with the same expressions in other words; and a copy of the scripts is given the same words in their places."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from weft.benchmarks.imug import official_questions
from weft.benchmarks.imug.official_questions import FOLDER, INSTRUCTION, QUESTION, SYSTEM

SYSTEM_TEXTS = {"dynamic": "Which letters hold? Reply with determined_answer.\n", "points": "Score each point.\n"}
IMAGE, KEY = (("score_image.py", "evaluate_task"), ("resolve_dynamic_answers.py", "resolve_answer"))
TEMPLATES: list[tuple[tuple[str, str], str, dict[str, str]]] = [  # where, words, expressions -> slots
    (IMAGE, "[[number]]: [[kind]] of turn [[turn]]", {"index + 1": "number", "reference_turn": "turn", "reference['ref_type']": "kind"}),
    (IMAGE, "[[number]]: the target", {"len(images) + 1": "number"}),
    (IMAGE, "* [[label]]\n", {"description": "label"}),
    (IMAGE, "[[number]]) [[point]]", {"index + 1": "number", "point": "point"}),
    (IMAGE, "[[pictures]]Told: [[instruction]]\nPoints: [[points]]", {"image_text": "pictures", INSTRUCTION: "instruction", "point_text": "points"}),
    (KEY, "<picture [[number]]>", {"image_index": "number"}),
    (KEY, "[[turn]]: [[question]] -> [[answer]]\n", {"reference_turn": "turn", "question": "question", "answer": "answer"}),
    (KEY, "[[turns]]Target [[turn]] is [[question]] ([[type]])", {"reference_text": "turns", "turn": "turn", QUESTION: "question", "choice_type": "type"}),
]  # fmt: skip
NAMES = {"pictures": "Shown:\n", "turns": "So far:\n", "no question": "(no question)", "no answer": "(no answer)",
         "several": "several letters", "single": "one letter"}  # fmt: skip


def write_stand_in(folder: Path) -> Path:
    (folder / FOLDER).mkdir(parents=True)
    write_system_texts(folder)
    rest = {
        IMAGE: [f"image_text = {NAMES['pictures']!r} + ''"],
        KEY: [
            f"reference_text = {NAMES['turns']!r}",
            f"task.get('text', {NAMES['no question']!r})",
            f"task.get('answer', {NAMES['no answer']!r})",
            f"choice_type = {NAMES['several']!r} if single else {NAMES['single']!r}",
        ],
    }
    for (file, function), lines in rest.items():
        texts = [ast.unparse(build(words, slots)) for where, words, slots in TEMPLATES if where == (file, function)]
        body = "".join(f"    {line}\n" for line in (*lines, *texts))
        (folder / FOLDER / file).write_text(f"def {function}():\n{body}")
    return folder


def reword(scripts: Path) -> None:
    """Put our words into a copy of the scripts, and check that weft reads the same there as in the stand-in."""
    texts = official_questions.read_released_rubrics(scripts).texts
    write_system_texts(scripts)
    for file, function in (IMAGE, KEY):
        path = scripts / FOLDER / file
        module = ast.parse(path.read_text())
        body = next(node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == function)
        found = [(words, slots) for where, words, slots in TEMPLATES if where == (file, function)]
        Reworder(found, {texts[name]: words for name, words in NAMES.items()}).visit(body)
        path.write_text(ast.unparse(ast.fix_missing_locations(module)))


class Reworder(ast.NodeTransformer):
    def __init__(self, templates: list[tuple[str, dict[str, str]]], constants: Mapping[str, str]) -> None:
        self._templates, self._constants = templates, constants

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        expressions = sorted(ast.unparse(part.value) for part in node.values if isinstance(part, ast.FormattedValue))
        for words, slots in self._templates:
            if sorted(slots) == expressions:
                return build(words, slots)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(self._constants.get(node.value, node.value)) if isinstance(node.value, str) else node


def build(words: str, slots: Mapping[str, str]) -> ast.JoinedStr:
    """An f-string with an expression in the place of each slot."""
    expressions = {slot: expression for expression, slot in slots.items()}
    values: list[ast.expr] = []
    for piece in re.split(r"(\[\[\w+\]\])", words):
        if piece.startswith("[["):
            values.append(ast.FormattedValue(ast.parse(expressions[piece[2:-2]], mode="eval").body, -1))
        elif piece:
            values.append(ast.Constant(piece))
    return ast.JoinedStr(values)


def write_system_texts(checkout: Path) -> None:
    for name, file in SYSTEM.items():
        (checkout / file).write_text(SYSTEM_TEXTS[name])
