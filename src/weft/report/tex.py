"""Texts for LaTeX. What comes out is plain ASCII that prints under pdflatex, xelatex and lualatex, with no package and
any font encoding: no text becomes a command, an argument or a ligature. Accents and Greek are written as commands; what
Latin fonts lack, Chinese or emoji, is replaced visibly, as [U+4E2D]."""

import re
import unicodedata

from weft.untrusted import escape_control_characters

COMMANDS = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "[": "{[}", "]": "{]}", "*": "{*}", "`": r"\`{}",
    "\u00a0": "~", "\u00ad": "", "\u200b": "", "‘": "{`}", "’": "{'}", "“": "{``}", "”": "{''}", "–": "--", "—": "---", "…": r"\ldots{}",
    "ß": r"\ss{}", "ø": r"\o{}", "Ø": r"\O{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ł": r"\l{}", "Ł": r"\L{}",
    "ı": r"\i{}", "§": r"\S{}", "©": r"\copyright{}", "£": r"\pounds{}", "¡": "!`", "¿": "?`", "−": "$-$",
    "°": r"$^{\circ}$", "¹": "$^{1}$", "²": "$^{2}$", "³": "$^{3}$", "½": r"$\frac{1}{2}$",
}  # fmt: skip
MATHS = {
    "×": "times", "±": "pm", "÷": "div", "·": "cdot", "•": "bullet", "≤": "leq", "≥": "geq", "≠": "neq", "≈": "approx", "∞": "infty",
    "→": "rightarrow", "←": "leftarrow", "↑": "uparrow", "↓": "downarrow", "↔": "leftrightarrow", "⇒": "Rightarrow", "∈": "in",
    "∼": "sim", "√": "surd", "∆": "Delta", "µ": "mu", "†": "dagger", "‡": "ddagger", "¬": "neg", "∅": "emptyset",
    "ϵ": "epsilon", "ε": "varepsilon", "ς": "varsigma", "ϕ": "phi", "φ": "varphi", "ϑ": "vartheta",
}  # fmt: skip
GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi", "omicron", "pi",
    "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
}  # fmt: skip
LIKE_LATIN = {
    "alpha": "A", "beta": "B", "epsilon": "E", "zeta": "Z", "eta": "H", "iota": "I", "kappa": "K", "mu": "M", "nu": "N", "omicron": "O",
    "rho": "P", "tau": "T", "chi": "X",
}  # fmt: skip
ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".", "\u0308": '"',
    "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0323": "d", "\u0327": "c",
}  # fmt: skip
LONG = 18  # a word with more characters may be broken
BREAKS = re.compile(r"(?<=[/:=,_\-.@+)\]])(?=[^/:=,_\-.@+)\]])")


def escape_tex(text: str, *, breaks: bool = False) -> str:
    """A text on one line. With `breaks`, long words may be broken after their punctuation, and anywhere if they have
    none."""
    line = escape_control_characters(" ".join(text.split()))
    line = re.sub(r"`([^`]+)`", "‘\\1’", line)  # a quotation in our notes
    line = re.sub(r'(^|(?<=[\s(\[]))"', "“", line).replace('"', "”")
    return " ".join(_breakable(word) if breaks and len(word) > LONG else _word(word) for word in line.split(" "))


def _breakable(word: str) -> str:
    pieces = [part for whole in BREAKS.split(word) for part in _cut(whole)]
    return r"\allowbreak{}".join(_word(piece) for piece in pieces)


def _cut(text: str, most: int = 24) -> list[str]:
    return [text[at : at + most] for at in range(0, len(text), most)]


def _word(text: str) -> str:
    """Repeated signs are kept from becoming ligatures."""
    one = unicodedata.normalize("NFC", text)
    kept = ["{}" if before == char and char in "-'," else "" for before, char in zip(" " + one, one, strict=False)]
    return "".join(apart + _character(char) for apart, char in zip(kept, one, strict=True))


def _character(char: str) -> str:
    if char in COMMANDS:
        return COMMANDS[char]
    if char in MATHS:
        return rf"$\{MATHS[char]}$"
    if " " <= char <= "~":
        return char
    return _greek(char) or _accented(char) or rf"{{[}}U+{ord(char):04X}{{]}}"


def _greek(char: str) -> str:
    found = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(char, ""))
    if found:
        name = found.group(2).lower().replace("lamda", "lambda")
    else:
        name = ""
    if found is None or name not in GREEK:
        return ""
    if found.group(1) == "SMALL":
        if name != "omicron":
            return rf"$\{name}$"
        return "o"
    return LIKE_LATIN.get(name) or rf"$\{name.capitalize()}$"


def _accented(char: str) -> str:
    """A Latin letter with one accent, as a command."""
    parts = unicodedata.normalize("NFD", char)
    if len(parts) != 2 or not parts[0].isascii() or parts[1] not in ACCENTS:
        return ""
    if parts[1] not in ("\u0323", "\u0327"):
        letter = {"i": r"\i", "j": r"\j"}.get(parts[0], parts[0])
    else:
        letter = parts[0]
    return rf"\{ACCENTS[parts[1]]}{{{letter}}}"
