"""A judge's prompts as text, Markdown, or LaTeX for the appendix of a paper.

Their texts are untrusted: the dataset's and a model's words are in them."""

import re
from collections.abc import Iterator, Sequence

from weft.judge_eval.prompts import JudgePrompt
from weft.report.charts import in_words
from weft.report.tex import escape_tex

WRAPPED = 90  # characters: a longer line that goes on with a word was wrapped
INDENT_EM = 0.5  # of a leading space in LaTeX
TEX_HEAD = "% plain ASCII, for pdflatex, xelatex and lualatex; the text breaks over pages\n"
TEX_STYLE = r"{\footnotesize\raggedright\setlength{\parindent}{0pt}\setlength{\parskip}{1pt}"


def render_prompts(prompts: Sequence[JudgePrompt], format: str) -> str:
    """Return prompts as `text`, `md` or `latex`."""
    if format == "latex":
        return TEX_HEAD + "\n".join(_render_latex(prompt) for prompt in prompts)
    heading = "## " if format == "md" else ""
    blocks: list[str] = []
    for prompt in prompts:
        blocks.append(f"{heading}{_title(prompt)}")
        for role, text in prompt.texts:
            if len(prompt.texts) > 1:
                blocks.append(f"{role}:")
            blocks.append(_fence(text) if format == "md" else text)
    return "\n\n".join(blocks) + "\n"


def _title(prompt: JudgePrompt) -> str:
    names = ", ".join(in_words(metric) for metric in prompt.metrics)
    if prompt.variant:
        names += f" ({prompt.variant})"
    return f"{names}: {prompt.sample}, turn {prompt.turn + 1}"


def _fence(text: str) -> str:
    """Return a block of Markdown that no text can end."""
    longest = max((len(ticks) for ticks in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _render_latex(prompt: JudgePrompt) -> str:
    lines = [rf"\paragraph{{{escape_tex(_title(prompt), breaks=True)}}}\mbox{{}}\par", TEX_STYLE]
    for role, text in prompt.texts:
        if len(prompt.texts) > 1:
            lines.append(rf"\textit{{{escape_tex(role)}}}\par")
        lines += _tex_lines(text)
    return "\n".join([*lines, "}"]) + "\n"


def _tex_lines(text: str) -> Iterator[str]:
    """Yield a paragraph for each line, indented as it is."""
    for line in _join_wrapped(text.splitlines()):
        content = line.strip()
        if not content:
            yield r"\smallskip"
            continue
        spaces = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        indent = rf"\hspace*{{{INDENT_EM * spaces:g}em}}" if spaces else ""
        yield rf"{indent}{escape_tex(content, breaks=True)}\par"


def _join_wrapped(lines: Sequence[str]) -> list[str]:
    """Return lines with those joined that were wrapped at a number of characters."""
    joined: list[str] = []
    last = ""
    for line in lines:
        if len(last) > WRAPPED and line.strip()[:1].isalnum():
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line)
        last = line
    return joined
