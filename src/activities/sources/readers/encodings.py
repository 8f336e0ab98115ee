"""The encoding of delimited text that does not say it.

A byte order mark or zeros tell, then UTF-8 is tried, then what its server declared counts. What is
left is recognized by its letters: first as browsers do, who know no encoding of DOS or of the old
Macintosh, and as one of these where the other reading has signs within words. Texts with one or two
letters beyond ASCII often fit several encodings; the one of browsers is taken then (ADR 0157).
"""

import codecs
import re
from collections import Counter
from json import detect_encoding
from pathlib import Path

from chardetng_py import detect

from activities.sources.readers.table import refuse
from runtime.content_types import known_charset, spellings, widest

SAMPLE = 64 * 1024
"""Bytes that are looked at."""
_PIECE = 1024 * 1024
_MARKED = frozenset({"utf-8-sig", "utf-16", "utf-32"})
"""Encodings that a byte order mark says."""
_FRENCH = re.compile("[\x00-\x7fàâæçéèêëîïôœùûüÿÀÂÆÇÉÈÊËÎÏÔŒÙÛÜŸ«»\u2018\u2019“”\u2013…€£°]*")
"""Text in the letters of French, in which no other language of Windows-1250 is written."""
_OF_WINDOWS, _EURO = re.compile(rb"[\x80-\x9f]"), re.compile(rb"[0-9]\s?\xa4|\xa4\s?[0-9]")
"""Bytes that are signs in Windows-1252 alone; amounts in euros, which it writes otherwise."""
_UNUSUAL = re.compile("[^\x00-\x7f\\w\u2018-\u201e\u2013\u2014«»…€£°§]")
_OLD = ("cp850", "cp437", "cp852", "mac_roman")
_LETTERS = ("äöüßé", "àèçñáíóúêôâãõøåæîëïûùœ", "ąćęłńśźżčďěňřšťůžőűý")
"""Letters beyond ASCII, the ones of more people first."""
_CAPITAL, _SMALL = "[À-ÖØ-ÞĀŁŒŠŸŽ]", "[à-öø-ÿœšžąćęłńśźżčďěňřťůőű]"
_LATIN = "[A-Za-zÀ-ÖØ-öø-\u024f]"
_DRAWN = "[\x80-\x9f\u2500-\u259f]"
_ODD = re.compile(
    f"[a-zA-Z]{_CAPITAL}(?=[a-z])|[a-z]{_CAPITAL}(?![A-Z])|[A-Z]{_SMALL}[A-Z]"
    # A letter of another script within a word.
    "|[a-zA-Z][^\x00-\u024f\u2000-\u2fff][a-z]"
    # A sign that is no letter, apostrophe or dash between letters.
    rf"|(?<={_LATIN})[^\x00-\x7f\w\u2018\u2019\u2010-\u2014\xa0\xad\xb7](?={_LATIN})"
    f"|[a-zA-Z]{_DRAWN}|{_DRAWN}[a-zA-Z]"
)
"""Faults that no text of a European language has: a reading with one is most likely wrong."""


def encoding_of(path: Path, sample: bytes, choice: str | None, declared: str | None) -> str:
    """The encoding of a file that begins with the sample. Raises SourceProblem for an unknown one.

    A `choice` counts in any case. Of the encodings that its name means in practice, or that of the
    declared one, it is the first that reads the whole file.
    """
    if choice is not None:
        return _readable(path, known_charset(choice) or _checked(choice))
    detected = detect_encoding(sample)
    if detected in _MARKED or (detected != "utf-8" and _is_read_in(detected, sample)):
        return detected
    if _is_read_in("utf-8", sample):
        return "utf-8"
    known = None if declared is None else known_charset(declared)
    return _recognized(sample) if known is None else _readable(path, known)


def _checked(name: str) -> str:
    try:
        codecs.lookup(name)
        b"a".decode(name)
    except (LookupError, ValueError):
        refuse(f"Unknown encoding {name}.")
    return name


def _readable(path: Path, name: str) -> str:
    """The first of the encodings that a name means in practice which reads the whole file."""
    candidates = spellings(name)
    read = (each for each in candidates if len(candidates) == 1 or _reads(path, each))
    return next(read, name)


def _reads(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                decoder.decode(piece)
            decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def _recognized(sample: bytes) -> str:
    """The most likely encoding of a text in no Unicode."""
    likeliest = widest(detect(sample))
    if likeliest == "cp1250" and _FRENCH.fullmatch(sample.decode("cp1252", "replace")):
        # Few letters do not tell: é is the same in both, and è is č.
        likeliest = "cp1252"
    if likeliest == "cp1252" and _EURO.search(sample) and not _OF_WINDOWS.search(sample):
        return "iso8859-15"
    if not _is_odd(likeliest, sample):
        return likeliest
    old = [name for name in _OLD if not _is_odd(name, sample)]
    return max(old, key=lambda name: _likelihood(name, sample), default=likeliest)


def _is_odd(encoding: str, sample: bytes) -> bool:
    if not _is_read_in(encoding, sample):
        return True
    return _ODD.search(sample.decode(encoding, "ignore")) is not None


def _likelihood(encoding: str, sample: bytes) -> int:
    """The weight of the letters that a text in this encoding has, without that of other signs."""
    counts = Counter(sample.decode(encoding, "ignore").lower())
    weights = enumerate(reversed(_LETTERS), start=1)
    likely = sum(weight * counts[letter] for weight, letters in weights for letter in letters)
    return likely - sum(counts[sign] for sign in counts if _UNUSUAL.match(sign))


def _is_read_in(encoding: str, sample: bytes) -> bool:
    """True for bytes in an encoding; a sample of more may end within a character."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(sample, len(sample) < SAMPLE)
    except UnicodeDecodeError:
        return False
    return True
