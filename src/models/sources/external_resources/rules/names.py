"""Names and identifiers as providers give them, made fit to be shown and kept.

A name may hold anything: path separators, control characters, and characters that turn the
direction of the text around them (Unicode UAX 9), by which `gpj.exe` reads as `exe.jpg`.
"""

import unicodedata

MAX_NAME = 200
UNTITLED = "Untitled"

_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")
"""They are part of words and of emoji."""


def shown_name(name: str) -> str:
    """A name without what is not seen, at most 200 characters; never empty."""
    kept = "".join(" " if char in "\t\r\n" else char for char in name if _is_shown(char))
    return " ".join(kept.split())[:MAX_NAME].strip() or UNTITLED


def identifier_problem(text: str) -> str | None:
    """The reason why a text cannot identify a resource, or None.

    The text goes into requests to the provider of the resource.
    """
    if any(unicodedata.category(char) in {"Cc", "Cs"} for char in text):
        return "has characters that are not text"
    return None


def _is_shown(char: str) -> bool:
    if char in "\t\r\n" or char in _JOINERS:
        return True
    return char not in _TURNING and unicodedata.category(char) not in _HIDDEN
