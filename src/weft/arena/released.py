"""What OpenING's released script makes of a judge's reply to a battle."""

from weft.stats.battles import Winner

SETTINGS = {"max_tokens": 5}  # with which it asks


def read_released_verdict(text: str) -> str | None:
    """The verdict as it is stored, which may be no verdict at all (`Tie ()`); None where one is drawn at random, or
    never comes."""
    if text[:1] in ("A", "B"):
        return text[0]
    if text[:3].lower() == "tie":
        return f"{text[:5]})"
    found = next((letter for letter in text if letter in "AB"), None)
    if found is None:
        return None
    return f"Tie({found})"


def to_winner(stored: str) -> Winner | None:
    """What a stored verdict counts as there: a tie of no direction is credited to nobody. None: it is in no rate but as
    a battle."""
    known: dict[str, Winner] = {"A": "A", "B": "B", "Tie(A)": "Tie(A)", "Tie(B)": "Tie(B)"}
    if stored in known:
        return known[stored]
    if "tie" in stored.lower():
        return "Tie"
    return None
