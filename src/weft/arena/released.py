"""What OpenING's released scripts make of a judge's reply to a battle, and how they lay a battle out before it."""

import ast
from pathlib import Path

from weft.errors import UserError
from weft.outside import text_file
from weft.stats.battles import Winner

SYSTEM = ("prompts/judge_system.txt", "OpenING-Benchmark/judge_system.txt", "OpenING-benchmark/judge_system.txt")
CRITERIA = ("prompts/detailed_score_system.txt",)
SCRIPTS = {"battle": "GPT_judge_AB.py", "criteria": "GPT_score_A.py"}
SIDE = 512  # of every picture, whatever its shape
SETTINGS = {"max_tokens": 5}


def released_verdict(text: str) -> str | None:
    """The verdict as they store it, which may be no verdict at all (`Tie ()`); None where they draw one at random, or never come back."""
    if text[:1] in ("A", "B"):
        return text[0]
    if text[:3].lower() == "tie":
        return f"{text[:5]})"
    found = next((letter for letter in text if letter in "AB"), None)
    return None if found is None else f"Tie({found})"


def as_winner(stored: str) -> Winner | None:
    """What a stored verdict counts as there: a tie of no direction is credited to nobody. None: it is in no rate but as a battle."""
    known: dict[str, Winner] = {"A": "A", "B": "B", "Tie(A)": "Tie(A)", "Tie(B)": "Tie(B)"}
    if stored in known:
        return known[stored]
    return "Tie" if "tie" in stored.lower() else None


def system_prompt(checkout: Path, which: str) -> str:
    places = SYSTEM if which == "battle" else CRITERIA
    found = next((checkout / place for place in places if (checkout / place).is_file()), None)
    if found is None:
        raise UserError(f"{checkout} has no {places[0]}: give a checkout of OpenING's repository")
    return text_file(found)


def closing(checkout: Path, which: str) -> str:
    """The sentence that ends their question, from their script: the one text there that begins a line and ends with a colon."""
    script = checkout / SCRIPTS[which]
    if not script.is_file():
        raise UserError(f"{checkout} has no {script.name}: give a checkout of OpenING's repository")
    try:
        tree = ast.parse(text_file(script))
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{script} cannot be read: {error}") from None
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    ends = [text for text in texts if text.startswith("\n") and text.endswith(": ") and len(text) < 300]
    found = dict.fromkeys(text for text in ends if "OUTPUT" not in text)
    if len(found) != 1:
        raise UserError(f"{script} has {len(found)} sentences that could end its question where one is known: is it another version?")
    return next(iter(found))
