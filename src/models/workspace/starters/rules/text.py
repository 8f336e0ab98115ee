"""Words of a plan made fit to be shown. Pure."""

import re
import unicodedata

_MARKUP = re.compile(
    r"<(script|style)\b.*?(</\1\s*>|$)|</?[a-z!][^>]*>?", re.IGNORECASE | re.DOTALL
)


def words(value: object, longest: int) -> str:
    """One line of plain text without markup and control characters, empty for anything else."""
    if not isinstance(value, str):
        return ""
    return " ".join(_plain(value).split())[:longest].strip()


def _plain(text: str) -> str:
    before = None
    while before != text:  # what a removal brings together is markup again
        before, text = text, _MARKUP.sub(" ", text)
    return "".join(" " if unicodedata.category(one) in _UNSEEN else one for one in text)


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
