"""Texts in which nothing is taken for a token that only templates may write: a dataset's words must not end a turn, nor
show a picture."""

APART = "\u200b"


class SpecialTokenEscaper:
    def __init__(self, tokenizers, more=()):
        """`more` are marks that no tokenizer knows as its own."""
        marks = set(more)
        for tokenizer in tokenizers:
            marks |= {*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()}
        self._marks = sorted((mark for mark in marks if len(mark) > 2 and not mark.isalnum()), key=len, reverse=True)

    def __call__(self, text):
        for mark in self._marks:
            if mark in text:
                text = text.replace(mark, mark[0] + APART + mark[1:])
        return text
