"""Delimited text: CSV, TSV and similar formats (RFC 4180, and common deviations from it).

Where a file does not say its encoding, a byte order mark or zeros tell, then UTF-8 is tried, then
what its server declared counts. What is left is recognized by its letters: first as browsers do,
who know no encoding of DOS or of the old Macintosh, and as one of these where the other reading has
signs within words. Texts with one or two letters beyond ASCII often fit several encodings; the one
of browsers is taken then (ADR 0157).
"""

import codecs
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import dropwhile, islice
from json import detect_encoding
from pathlib import Path
from typing import NamedTuple, TypeAlias

from chardetng_py import detect

from activities.sources.readers import table
from models.data.record_exports.rules import csv_text
from models.sources.tabular.rules.cells import Cell, MarkedText, cell
from models.sources.tabular.rules.options import MAX_CELL_BYTES, ReadOptions, TableFormat
from models.sources.tabular.rules.proposals import HEADER_SEARCH, header_row
from runtime.content_types import has_controls, known_charset, spellings, widest

SAMPLE = 64 * 1024
"""Bytes that are looked at."""
_PIECE = 1024 * 1024
_MARKED = frozenset({"utf-8-sig", "utf-16", "utf-32"})
"""Encodings that a byte order mark says."""
_UTF_8 = frozenset({"utf-8", "utf-8-sig"})
_FRENCH = re.compile("[\x00-\x7fàâæçéèêëîïôœùûüÿÀÂÆÇÉÈÊËÎÏÔŒÙÛÜŸ«»\u2018\u2019“”\u2013…€£°]*")
"""Text in the letters of French, in which no other language of Windows-1250 is written."""
_OF_WINDOWS = re.compile(rb"[\x80-\x9f]")
"""Bytes that are signs in Windows-1252 alone."""
_EURO = re.compile(rb"(?<![A-Za-z\x80-\x9f\xa1-\xff])\xa4(?![A-Za-z\x80-\x9f\xa1-\xff])")
"""The euro outside of words, which Windows-1252 writes otherwise."""
_AMOUNTS = re.compile(
    rb"[0-9][ \xa0]?[\x80\xa3-\xa5]|[\x80\xa3-\xa5][ \xa0]?[0-9]|(?<=[0-9])\xa0(?=[0-9])"
)
"""Bytes beyond ASCII that an amount has in Windows-1252."""
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
    if known is None and _is_mostly_utf_8(sample):
        return "utf-8"
    return _recognized(sample) if known is None else _readable(path, known)


def _is_mostly_utf_8(sample: bytes) -> bool:
    """True for UTF-8 with some stray bytes: few of another encoding are UTF-8 by chance."""
    text = sample.decode("utf-8", "surrogateescape")
    beyond = [sign for sign in text if not sign.isascii()]
    stray = sum("\udc80" <= sign <= "\udcff" for sign in beyond)
    return len(beyond) - stray > stray


def _of_windows(error: UnicodeError) -> tuple[str, int]:
    """The signs of Windows-1252 for bytes that are no UTF-8."""
    assert isinstance(error, UnicodeDecodeError), "only reading asks for this"
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


_STRAY = "windows-1252"
codecs.register_error(_STRAY, _of_windows)
_STRAY_NOTE = "Some characters are not UTF-8, and are read as Windows-1252. Check them."


def _checked(name: str) -> str:
    try:
        codecs.lookup(name)
        b"a".decode(name)
    except (LookupError, ValueError):
        table.refuse(f"Unknown encoding {name}.")
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
                if has_controls(decoder.decode(piece), encoding):
                    return False
            decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def _recognized(sample: bytes) -> str:
    """The most likely encoding of a text in no Unicode."""
    likeliest = "cp1252" if _AMOUNTS.sub(b"", sample).isascii() else widest(detect(sample))
    if likeliest == "cp1250" and _FRENCH.fullmatch(sample.decode("cp1252", "replace")):
        # Few letters do not tell: é is the same in both, and è is č.
        likeliest = "cp1252"
    if (
        likeliest in {"cp1252", "cp1254"}
        and _EURO.search(sample)
        and not _OF_WINDOWS.search(sample)
    ):
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


_Line: TypeAlias = tuple[int, list[str]]
"""A line of cells and its number, counted from 1."""
_MARKUP = re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype\s+html|html)\b", re.IGNORECASE)
_DELIMITERS = ",;\t|"
_OF_TEXT = re.compile(r"(?<=[0-9]),(?=[0-9])|,(?= )")
"""A comma within a number, or between words."""
_ESCAPED = re.compile(r'(\\+)"')
"""Backslashes before a quotation mark."""
_STATED = re.compile(r'("?)sep=([^\w\s"]|\t)\2*\1', re.IGNORECASE)
_QUOTED = re.compile(r'"(?:[^"]+|"")*+"')
_FORMULA_OF_TEXT = re.compile(r'="((?:[^"]|"")*)"')
"""A text that Excel shall not read as a number, as many programs export it."""
_LINE_END = re.compile(r"\r\n|\r|\n")
_END_OF_FILE = "\x1a"
"""The mark that DOS programs write behind the last line."""


class _Form(NamedTuple):
    """The form of a file.

    `spaced` says that spaces stand before quotation marks of cells, `escaped` that a backslash
    stands before quotation marks within cells, in place of a second mark, and `stray` that some
    bytes are no UTF-8.
    """

    encoding: str
    delimiter: str
    spaced: bool
    escaped: bool
    stray: bool


def read_delimited(path: Path, options: ReadOptions) -> table.Table:
    """The table in a file of delimited text. Raises SourceProblem.

    The row of headers counts from the first line that holds a value, as that of a workbook does.
    """
    form = _form(path, options)

    def lines() -> Iterator[_Line]:
        return dropwhile(_is_blank, enumerate(_read(path, form), start=1))

    header = options.header_row
    if header is None:
        header = header_row(_cells(line) for _, line in islice(lines(), HEADER_SEARCH))
    skipped = max(header, 1) - 1

    def below(skips: int = 1 if header else 0) -> Iterator[_Line]:
        begun = dropwhile(_is_blank, islice(lines(), skipped, None))
        return islice(begun, skips, None)

    _, first = next(below(0), (0, None))
    if first is None:
        what = "header row where expected" if skipped else "line with a value"
        table.refuse(f"The file has no {what}.")
    width = max([len(first), *(len(line) for _, line in islice(below(), 1_000))])
    named = _cells(first) if header else None
    headers = table.headers_of(named, _filled_width(named or [], width, below))
    numbers = table.RowNumbers()

    def rows() -> Iterator[table.Row]:
        numbers.restart()
        for number, line in below():
            if line:
                numbers.note(number)
                yield _as_wide(line, len(headers))

    return table.Table(
        headers,
        lambda: table.bounded(rows()),
        header_row=header,
        delimiter=form.delimiter,
        encoding=form.encoding,
        note=_STRAY_NOTE if form.stray else None,
        numbers=numbers,
    )


def _form(path: Path, options: ReadOptions) -> _Form:
    with path.open("rb") as file:
        sample = file.read(SAMPLE)
    _check_kind(sample)
    encoding = encoding_of(path, sample, options.encoding, options.charset)
    text = sample.decode(encoding, errors="ignore").lstrip("\ufeff")
    lines = text.splitlines()[:100]
    lines = lines[:-1] if len(lines) > 1 and len(sample) == SAMPLE else lines
    delimiter = _delimiter(text, lines, options)
    return _Form(
        encoding,
        delimiter,
        spaced=_is_spaced(lines, delimiter),
        escaped=_is_escaped(text, delimiter),
        stray=encoding in _UTF_8 and not _is_read_in("utf-8", sample) and _is_mostly_utf_8(sample),
    )


def _cells(line: list[str]) -> table.Row:
    return [cell(_text(value)) for value in line]


def _text(value: str) -> str:
    """A cell without what says that it is a text: the apostrophe of an export, or `="007"`."""
    if quoted := _FORMULA_OF_TEXT.fullmatch(value):
        return MarkedText(quoted[1].replace('""', '"'))
    text = csv_text(value) if value.startswith("'") else value
    return value if text == value else MarkedText(text)


def _is_blank(line: _Line) -> bool:
    return not any(map(str.strip, line[1]))


def _filled_width(named: Sequence[Cell], width: int, below: Callable[[], Iterator[_Line]]) -> int:
    """The columns up to the last that has a name or a value: each line may end with a delimiter."""
    filled = max((place for place, name in enumerate(named, start=1) if name), default=0)
    if filled < width:
        for _, line in below():
            for place in range(len(line), filled, -1):
                if line[place - 1].strip():
                    filled = place
                    break
            if filled >= width:
                return width
    return filled


def _check_kind(sample: bytes) -> None:
    """Refuse content that is not delimited text."""
    if not sample.strip():
        table.refuse("The file is empty.")
    if _MARKUP.match(sample):
        table.refuse("The file is HTML, not delimited text. Check its URL and access.")
    if sample.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        table.refuse(
            "The file is a workbook, not delimited text. Choose the format xlsx, xls or ods."
        )


def _read(path: Path, form: _Form) -> Iterator[list[str]]:
    try:
        errors = _STRAY if form.stray else "strict"
        with path.open(encoding=form.encoding, errors=errors, newline="") as text:
            lines = table.bounded_lines(text)
            doubled = map(_doubled, lines) if form.escaped else lines
            yield from read_lines(doubled, form.delimiter, spaced=form.spaced)
    except (UnicodeError, LookupError):
        table.refuse(f"The file is not encoded in {form.encoding}. Choose its encoding.")


def read_lines(
    lines: Iterable[str],
    delimiter: str = ",",
    longest: int = 4 * MAX_CELL_BYTES,
    *,
    spaced: bool = False,
) -> Iterator[list[str]]:
    """The cells of each row of delimited text, whose lines keep their ends.

    A first line `sep=;`, which sets the delimiter for Excel, is skipped; so is a mark of the end of
    the file. If `spaced`, a quotation mark behind spaces begins a cell. Raises SourceProblem, which
    names the line where a quotation mark begins that nothing closes.
    """
    csv.field_size_limit(longest)
    # The lines of the row that is read, and the number of lines before it.
    row: list[str] = []
    read, at_end = 0, False

    def taken() -> Iterator[str]:
        nonlocal at_end, read
        for number, line in enumerate(lines):
            plain = line.lstrip("\ufeff") if number == 0 else line
            if (number == 0 and stated_delimiter(plain)) or plain.rstrip() == _END_OF_FILE:
                read += 1
                continue
            row.append(plain)
            yield plain
        at_end = True

    reader = csv.reader(taken(), delimiter=delimiter, skipinitialspace=spaced)
    behind = re.compile(f"[{re.escape(delimiter)}\r\n]{' *' if spaced else ''}")
    try:
        for cells in reader:
            if at_end or len(row) > 1:
                _check_quotes(row, read, behind)
            read += len(row)
            row.clear()
            yield cells
    except csv.Error:
        most = MAX_CELL_BYTES // 1024
        _check_quotes(row, read, behind, f", or the cell is longer than {most} KiB")
        table.refuse(f"A cell in line {read + 1} is too long: the limit is {most} KiB.")


def stated_delimiter(line: str) -> str | None:
    """The delimiter that a first line states, as `sep=;` does; None for any other line."""
    found = _STATED.fullmatch(line.strip(" \r\n"))
    return None if found is None else found[2]


def _check_quotes(row: Sequence[str], before: int, behind: re.Pattern[str], but: str = "") -> None:
    """Refuse a quotation mark that nothing closes, or only one that begins a cell further below.

    `behind` is what stands between two cells.
    """
    text, place = "".join(row), 0
    while place < len(text):
        if text[place] == '"':
            quoted = _QUOTED.match(text, place)
            if quoted is None or _begins_another(text, quoted, behind):
                line = before + 1 + len(_LINE_END.findall(text, 0, place))
                table.refuse(
                    f"The quotation mark that begins a cell in line {line} is not closed{but}."
                    " Close it, or double it where it is part of the text."
                )
            place = quoted.end()
        following = behind.search(text, place)
        place = len(text) if following is None else following.end()


def _begins_another(text: str, quoted: re.Match[str], behind: re.Pattern[str]) -> bool:
    """True when the mark that closes a cell of several lines is where a cell begins."""
    last = quoted.end() - 1
    following = text[last + 1 : last + 2]
    return (
        behind.fullmatch(text[last - 1]) is not None
        and last - 1 > quoted.start()
        and _LINE_END.search(quoted[0]) is not None
        and bool(following.strip())
        and behind.fullmatch(following) is None
    )


def _as_wide(line: list[str], width: int) -> table.Row:
    """The cells of a line: missing ones are empty, and none may be beyond the headers."""
    if len(line) > width:
        if any(value.strip() for value in line[width:]):
            table.refuse(f"A row has more than {width} cells: {', '.join(line)[:80]}…")
        line = line[:width]
    cells: list[Cell] = [
        (_text(value) or None if value[0] in "'=" else value)
        if value and not value.isspace()
        else None
        for value in line
    ]
    return cells + [None] * (width - len(cells)) if len(cells) < width else cells


def _delimiter(text: str, lines: Sequence[str], options: ReadOptions) -> str:
    """The delimiter: as chosen, as stated, or what divides most lines into equally many cells."""
    stated = stated_delimiter(text.partition("\n")[0].partition("\r")[0])
    if options.format is TableFormat.TSV:
        return stated or "\t"
    if options.delimiter != "auto":
        return options.delimiter
    if stated is not None:
        return stated
    likeliest = max(_DELIMITERS, key=lambda delimiter: _evenness(lines, delimiter))
    # Files of one column are written with decimal commas where semicolons divide cells.
    return ";" if likeliest == "," and _is_one_column(lines) else likeliest


def _is_one_column(lines: Sequence[str]) -> bool:
    """True for a name without commas, above numbers or texts with commas of their own."""
    if any(delimiter in line for line in lines for delimiter in _DELIMITERS[1:]):
        return False
    filled = [*dropwhile(_is_empty, lines)]
    name, below = "".join(filled[:1]), filled[1:]
    commas = [line.count(",") for line in below if line.strip()]
    if "," in name or not any(commas) or any('"' in line for line in below):
        return False
    if any(len(_OF_TEXT.findall(line)) < line.count(",") for line in below):
        return False
    # A title stands above a table, most often with an empty line between them.
    return min(commas) < max(commas) or (max(commas) == 1 and not _is_empty(below[0]))


def _is_empty(line: str) -> bool:
    return not line.strip()


def _is_escaped(text: str, delimiter: str) -> bool:
    """True where a cell in quotation marks has one behind a backslash."""
    divider = re.escape(delimiter)
    within = rf'(?:[^"\\]|\\.|"")*?\\"(?!{divider}|[\r\n"]|$)'
    begins = re.compile(rf'(?:^|{divider})"{within}', re.MULTILINE)
    return '\\"' in text and begins.search(text) is not None


def _doubled(line: str) -> str:
    """A line with doubled quotation marks in place of those behind a backslash."""
    return _ESCAPED.sub(_without_escape, line) if "\\" in line else line


def _without_escape(found: re.Match[str]) -> str:
    backslashes, odd = divmod(len(found[1]), 2)
    return "\\" * backslashes + ('""' if odd else '"')


def _evenness(lines: Sequence[str], delimiter: str, *, spaced: bool = False) -> tuple[int, int]:
    """The lines of the most frequent width, and that width; none where no line is divided."""
    try:
        rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=spaced)
        widths = Counter(len(row) for row in rows if row)
    except csv.Error:
        return 0, 0
    width, times = max(widths.items(), key=lambda one: (one[1], one[0]), default=(0, 0))
    return (times, width) if width > 1 else (0, 0)


def _is_spaced(lines: Sequence[str], delimiter: str) -> bool:
    """True for lines such as `a, "b, c"`, which are as even if the spaces are passed over."""
    begins = re.compile(rf'{re.escape(delimiter)} +"(?!")')
    if not any(map(begins.search, lines)):
        return False
    return _evenness(lines, delimiter, spaced=True) >= _evenness(lines, delimiter)
