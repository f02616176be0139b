"""Text for LaTeX: plain ASCII that prints under pdflatex, xelatex and lualatex, with no package and any font encoding.

No text becomes a command, an argument or a ligature. Accents and Greek letters become commands; what Latin fonts lack,
such as Chinese or emoji, is shown as [U+4E2D]."""

import re
import unicodedata

from weft.untrusted import escape_control_characters

COMMANDS = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "[": "{[}", "]": "{]}", "*": "{*}", "`": r"\`{}", "\u00a0": "~", "\u00ad": "", "\u200b": "",
    "‘": "{`}", "’": "{'}", "“": "{``}", "”": "{''}", "–": "--", "—": "---", "…": r"\ldots{}", "ß": r"\ss{}",
    "ø": r"\o{}", "Ø": r"\O{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ł": r"\l{}",
    "Ł": r"\L{}", "ı": r"\i{}", "§": r"\S{}", "©": r"\copyright{}", "£": r"\pounds{}", "¡": "!`", "¿": "?`",
    "−": "$-$", "°": r"$^{\circ}$", "¹": "$^{1}$", "²": "$^{2}$", "³": "$^{3}$", "½": r"$\frac{1}{2}$",
}  # fmt: skip
MATHS = {
    "×": "times", "±": "pm", "÷": "div", "·": "cdot", "•": "bullet", "≤": "leq", "≥": "geq", "≠": "neq",
    "≈": "approx", "∞": "infty", "→": "rightarrow", "←": "leftarrow", "↑": "uparrow", "↓": "downarrow",
    "↔": "leftrightarrow", "⇒": "Rightarrow", "∈": "in", "∼": "sim", "√": "surd", "∆": "Delta", "µ": "mu",
    "†": "dagger", "‡": "ddagger", "¬": "neg", "∅": "emptyset", "ϵ": "epsilon", "ε": "varepsilon", "ς": "varsigma",
    "ϕ": "phi", "φ": "varphi", "ϑ": "vartheta",
}  # fmt: skip
GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
}  # fmt: skip
LIKE_LATIN = {
    "alpha": "A", "beta": "B", "epsilon": "E", "zeta": "Z", "eta": "H", "iota": "I", "kappa": "K", "mu": "M",
    "nu": "N", "omicron": "O", "rho": "P", "tau": "T", "chi": "X",
}  # fmt: skip
ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0323": "d", "\u0327": "c",
}  # fmt: skip
MAX_UNBROKEN = 18  # characters of a word that may not be broken
MAX_PIECE = 24  # characters between two places where a word may be broken
WORD_BREAKS = re.compile(r"(?<=[/:=,_\-.@+)\]])(?=[^/:=,_\-.@+)\]])")
LIGATURES = "-',"  # characters that LaTeX joins when they are repeated


def escape_tex(text: str, *, breaks: bool = False) -> str:
    """Return a text on one line. With `breaks`, long words may be broken after punctuation, or anywhere without it."""
    line = escape_control_characters(" ".join(text.split()))
    line = re.sub(r"`([^`]+)`", "‘\\1’", line)  # notes quote names in backticks
    line = re.sub(r'(^|(?<=[\s(\[]))"', "“", line).replace('"', "”")
    words: list[str] = []
    for word in line.split(" "):
        if breaks and len(word) > MAX_UNBROKEN:
            words.append(_escape_breakable(word))
        else:
            words.append(_escape_word(word))
    return " ".join(words)


def _escape_breakable(word: str) -> str:
    pieces: list[str] = []
    for part in WORD_BREAKS.split(word):
        starts = range(0, len(part), MAX_PIECE)
        pieces += [_escape_word(part[start : start + MAX_PIECE]) for start in starts]
    return r"\allowbreak{}".join(pieces)


def _escape_word(text: str) -> str:
    """Return a word in which repeated signs do not become ligatures."""
    escaped = ""
    previous = ""
    for char in unicodedata.normalize("NFC", text):
        if char == previous and char in LIGATURES:
            escaped += "{}"
        escaped += _escape_character(char)
        previous = char
    return escaped


def _escape_character(char: str) -> str:
    if char in COMMANDS:
        return COMMANDS[char]
    if char in MATHS:
        return rf"$\{MATHS[char]}$"
    if " " <= char <= "~":
        return char
    return _escape_greek(char) or _escape_accented(char) or rf"{{[}}U+{ord(char):04X}{{]}}"


def _escape_greek(char: str) -> str:
    """Return the command of a Greek letter; an empty text for other characters."""
    match = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(char, ""))
    if match is None:
        return ""
    name = match.group(2).lower().replace("lamda", "lambda")
    if name not in GREEK:
        return ""
    if match.group(1) == "CAPITAL":
        return LIKE_LATIN.get(name) or rf"$\{name.capitalize()}$"
    if name == "omicron":
        return "o"
    return rf"$\{name}$"


def _escape_accented(char: str) -> str:
    """Return the command of a Latin letter with one accent; an empty text for other characters."""
    parts = unicodedata.normalize("NFD", char)
    if len(parts) != 2 or not parts[0].isascii() or parts[1] not in ACCENTS:
        return ""
    letter, accent = parts
    is_above = accent not in ("\u0323", "\u0327")
    if is_above and letter in "ij":
        letter = "\\" + letter  # without its dot
    return rf"\{ACCENTS[accent]}{{{letter}}}"
