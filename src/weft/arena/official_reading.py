"""How OpenING's released script reads a judge's reply to a battle."""

from weft.stats.battles import Winner

SETTINGS = {"max_tokens": 5}  # of its judge calls


def read_released_verdict(text: str) -> str | None:
    """Return the verdict as the script stores it, which may be no verdict at all (`Tie ()`).

    Returns None where the script draws a verdict at random, or never gets one.
    """
    if text[:1] in ("A", "B"):
        return text[0]
    if text[:3].lower() == "tie":
        return f"{text[:5]})"
    for letter in text:
        if letter in "AB":
            return f"Tie({letter})"
    return None


def to_winner(stored: str) -> Winner | None:
    """Return what a stored verdict counts as: a tie without direction is credited to nobody.

    None means that it counts as a battle, but towards no rate.
    """
    winners: dict[str, Winner] = {"A": "A", "B": "B", "Tie(A)": "Tie(A)", "Tie(B)": "Tie(B)"}
    if stored in winners:
        return winners[stored]
    if "tie" in stored.lower():
        return "Tie"
    return None
