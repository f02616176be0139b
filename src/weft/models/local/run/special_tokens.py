"""Escaping of special tokens in texts: a dataset's text must not end a turn, nor insert an image."""

SEPARATOR = "\u200b"


class SpecialTokenEscaper:
    """Splits special tokens in a text, so that tokenizers read them as ordinary text."""

    def __init__(self, tokenizers, more=()):
        """`more` are marks that the tokenizers do not know as special tokens."""
        marks = set(more)
        for tokenizer in tokenizers:
            marks |= {*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()}
        self._marks = sorted((mark for mark in marks if len(mark) > 2 and not mark.isalnum()), key=len, reverse=True)

    def __call__(self, text):
        for mark in self._marks:
            if mark in text:
                text = text.replace(mark, mark[0] + SEPARATOR + mark[1:])
        return text
