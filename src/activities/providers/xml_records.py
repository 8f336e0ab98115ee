"""Answers in XML, read as they arrive: the elements of some names, each with the texts in it."""

from collections.abc import Callable
from xml.parsers import expat

from activities.providers.adapter import ProblemKind, ProviderProblem

MAX_TEXT = 64 * 1024
"""Characters of one element."""
MAX_TOKEN = 256 * 1024
"""Bytes in which no element begins or ends, and no text: a tag that goes on and on is read anew
with each piece that arrives."""
MAX_DEPTH = 32
MAX_PARTS = 200
"""Elements in one record."""
_PIECE = 64 * 1024

Record = list[tuple[str, str]]
"""The local names of the elements in a record, in the order they end, and their texts."""


class XmlRecords:
    """Gives each element of a name in `records` to `take`, and keeps nothing of it.

    A document with a DTD is refused: it could name entities that grow without end, or files.
    """

    def __init__(self, records: frozenset[str], take: Callable[[str, Record], None]) -> None:
        self._records = records
        self._take = take
        self._record: Record | None = None
        self._within = 0
        self._depth = 0
        self._text: list[str] = []
        self._length = 0
        self._unread = 0
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype

    def feed(self, chunk: bytes, *, last: bool = False) -> None:
        """Read on. Raises ProviderProblem."""
        for start in range(0, len(chunk), _PIECE):
            self._parse(chunk[start : start + _PIECE])
        if last:
            self._parse(b"", last=True)

    def _parse(self, piece: bytes, *, last: bool = False) -> None:
        self._unread += len(piece)
        try:
            self._parser.Parse(piece, last)
        except expat.ExpatError:
            raise _malformed() from None
        if self._unread > MAX_TOKEN:
            raise _malformed()

    def _start(self, name: str, _attributes: object) -> None:
        self._depth += 1
        self._unread = 0
        if self._depth > MAX_DEPTH:
            raise _malformed()
        self._text.clear()
        self._length = 0
        if self._record is None and _local(name) in self._records:
            self._record, self._within = [], self._depth

    def _end(self, name: str) -> None:
        self._unread = 0
        if self._record is not None:
            if self._depth == self._within:
                self._take(_local(name), self._record)
                self._record = None
            elif len(self._record) < MAX_PARTS:
                self._record.append((_local(name), "".join(self._text).strip()))
        else:
            self._take(_local(name), [("", "".join(self._text).strip())])
        self._text.clear()
        self._length = 0
        self._depth -= 1

    def _characters(self, text: str) -> None:
        self._length += len(text)
        self._unread = 0
        if self._length > MAX_TEXT:
            raise _malformed()
        self._text.append(text)

    def _doctype(self, *_: object) -> None:
        raise _malformed()


def first(record: Record, name: str) -> str | None:
    """The text of the first element of a name that has one."""
    return next((text for one, text in record if one == name and text), None)


def has(record: Record, name: str) -> bool:
    return any(one == name for one, _ in record)


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _malformed() -> ProviderProblem:
    return ProviderProblem(ProblemKind.MALFORMED, "The provider answered with no XML to be read.")
