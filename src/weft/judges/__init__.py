"""From a `Question` to a `Verdict`. `vlm.py` asks a model, `parse.py` reads its reply, `fence.py` keeps material apart from orders,
`packs.py` takes a paper's exact prompts from the user's own checkout."""

from typing import Protocol

from weft.types import Question, Verdict


class Judge(Protocol):
    @property
    def name(self) -> str: ...

    async def judge(self, question: Question) -> Verdict: ...
