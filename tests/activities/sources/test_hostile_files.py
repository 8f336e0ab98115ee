"""Files made to do harm: refused with what to change, soon, and in little memory."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from activities.sources.reading import Reading, ReadingEndedError, reading
from models.sources.tabular.rules.options import ErrorKind, ReadOptions, SourceProblem, TableFormat
from tests.support.workbooks import (
    MAIN,
    SHEET,
    STRINGS,
    STYLES,
    compound,
    number,
    packed,
    sheet,
    styles,
    text,
)

HEADER = text("A1", "Name")
PROCESSOR_SECONDS = 2.0
MEMORY = 200 * 1024**2
_TICKS = os.sysconf("SC_CLK_TCK")
BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))


def formatted(row: str, **more: str) -> bytes:
    return packed({SHEET: sheet(HEADER, row, **more)})


def nested(times: int) -> bytes:
    content: bytes = formatted(number("A2", 1))
    for _ in range(times):
        content = packed({"inner.xlsx": content, "xl/workbook.xml": ""})
    return content


def lying() -> bytes:
    """A sheet that unpacks to more than its entry says."""
    row = text("A2", "a" * 5_000_000)
    size = len(sheet(HEADER, row)).to_bytes(4, "little")
    return formatted(row).replace(size, (1_000).to_bytes(4, "little"))


Make = Callable[[], bytes]
REFUSED: dict[str, tuple[TableFormat, Make, ErrorKind, str]] = {
    "zip bomb": (
        TableFormat.XLSX,
        lambda: formatted(text("A2", " " * 5_000_000)),
        ErrorKind.TOO_LARGE,
        "unpacks to more than 100 times",
    ),
    "lying zip": (TableFormat.XLSX, lying, ErrorKind.PARSE, "Save it again"),
    "nested zip": (TableFormat.XLSX, lambda: nested(5), ErrorKind.PARSE, "Save it again"),
    "many parts": (
        TableFormat.XLSX,
        lambda: packed({f"part{n}": "" for n in range(10_001)}),
        ErrorKind.TOO_LARGE,
        "10,000 parts",
    ),
    "entity bomb": (
        TableFormat.XLSX,
        lambda: formatted(text("A2", "&e9;"), before=f'<!DOCTYPE a [<!ENTITY e0 "e">{BOMB}]>'),
        ErrorKind.PARSE,
        "unrecognized entity",
    ),
    "external entity": (
        TableFormat.XLSX,
        lambda: formatted(
            text("A2", "&e;"), before='<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
        ),
        ErrorKind.PARSE,
        "unrecognized entity",
    ),
    "a cell in the last corner": (
        TableFormat.XLSX,
        lambda: formatted(number("XFD1048576", 1)),
        ErrorKind.TOO_LARGE,
        "delete what is empty",
    ),
    "a row that cannot be": (
        TableFormat.XLSX,
        lambda: formatted(number("A4000000000", 1)),
        ErrorKind.TOO_LARGE,
        "delete what is empty",
    ),
    "16,384 columns": (
        TableFormat.XLSX,
        lambda: packed({SHEET: sheet("<c><v>1</v></c>" * 16_384)}),
        ErrorKind.TOO_LARGE,
        "more than 200 columns",
    ),
    "strings that are not there": (
        TableFormat.XLSX,
        lambda: packed({STRINGS: f'<sst {MAIN} uniqueCount="4000000000"/>', SHEET: sheet(HEADER)}),
        ErrorKind.TOO_LARGE,
        "more memory",
    ),
    "an index of no string": (
        TableFormat.XLSX,
        lambda: formatted('<c r="A2" t="s"><v>9</v></c>'),
        ErrorKind.PARSE,
        "Save it again",
    ),
    "a reference of no cell": (
        TableFormat.XLSX,
        lambda: formatted(number("2A", 1)),
        ErrorKind.PARSE,
        "Save it again",
    ),
    "no workbook in the zip": (
        TableFormat.XLSX,
        lambda: packed({"xl/workbook.xml": "", "xl/_rels/workbook.xml.rels": ""}),
        ErrorKind.PARSE,
        "Save it again",
    ),
    "truncated zip": (
        TableFormat.XLSX,
        lambda: formatted(number("A2", 1))[:-30],
        ErrorKind.PARSE,
        "incomplete",
    ),
    "encrypted": (
        TableFormat.XLSX,
        lambda: compound("EncryptedPackage"),
        ErrorKind.PARSE,
        "Save it without a password",
    ),
    "broken old workbook": (
        TableFormat.XLS,
        lambda: compound("Book")[:700],
        ErrorKind.PARSE,
        "Save it again",
    ),
    "html as xls": (
        TableFormat.XLS,
        lambda: b"<html><table><tr><td>a</td></tr></table></html>",
        ErrorKind.PARSE,
        "Choose its format",
    ),
    "csv as xlsx": (TableFormat.XLSX, lambda: b"a,b\n", ErrorKind.PARSE, "Choose its format"),
    "xlsx as csv": (
        TableFormat.CSV,
        lambda: formatted(number("A2", 1)),
        ErrorKind.PARSE,
        "Choose the format xlsx",
    ),
    "one line": (
        TableFormat.CSV,
        lambda: b"a," * 50_000_000,
        ErrorKind.TOO_LARGE,
        "Line 1 is longer than 6 MiB",
    ),
    "unclosed quote": (
        TableFormat.CSV,
        lambda: b'a,b\n1,2\n"' + b"x,y\n" * 5_000_000,
        ErrorKind.PARSE,
        "in line 3 is not closed",
    ),
    "noughts": (TableFormat.CSV, lambda: bytes(1_000_000), ErrorKind.PARSE, "too long"),
    "100,000 headers": (
        TableFormat.CSV,
        lambda: b",".join(b"c%d" % n for n in range(100_000)),
        ErrorKind.TOO_LARGE,
        "more than 200 columns",
    ),
    "deep JSON": (
        TableFormat.JSON,
        lambda: b'{"a":' * 100_000 + b"}" * 100_000,
        ErrorKind.PARSE,
        "recursion limit",
    ),
    "100,000 digits": (
        TableFormat.JSON,
        lambda: b'[{"a":' + b"9" * 100_000 + b"}]",
        ErrorKind.PARSE,
        "out of range",
    ),
    "no number": (TableFormat.JSON, lambda: b'[{"a":NaN}]', ErrorKind.PARSE, "column 7"),
    "more rows than there may be": (
        TableFormat.JSON,
        lambda: b"[" + b"[]," * 1_000_000 + b"[]]",
        ErrorKind.TOO_LARGE,
        "more than 1,000,000 rows",
    ),
    "3,000,000 empty rows": (
        TableFormat.JSON,
        lambda: b"[" + b"{}," * 3_000_000 + b"{}]",
        ErrorKind.TOO_LARGE,
        "more memory",
    ),
    "200,000 keys": (
        TableFormat.JSON,
        lambda: b"[{" + b",".join(b'"%d":1' % n for n in range(200_000)) + b"}]",
        ErrorKind.TOO_LARGE,
        "more than 200 columns",
    ),
    "a broken line": (TableFormat.NDJSON, lambda: b'{"a":1}\n{"a":', ErrorKind.PARSE, "Line 2"),
    "one line of NDJSON": (
        TableFormat.NDJSON,
        lambda: b'{"a":"' + b"x" * 50_000_000,
        ErrorKind.TOO_LARGE,
        "Line 1 is longer than 6 MiB",
    ),
}

READ: dict[str, tuple[TableFormat, Make, list[Any]]] = {
    "a dimension that lies": (
        TableFormat.XLSX,
        lambda: formatted(number("A2", 1), head='<dimension ref="A1:XFD1048576"/>'),
        [1],
    ),
    "a million empty rows": (
        TableFormat.XLSX,
        lambda: packed(
            {
                SHEET: sheet(HEADER).replace("</sheetData>", "")[: -len("</worksheet>")]
                + f'<row r="1048576">{number("A1048576", 2)}</row></sheetData></worksheet>'
            }
        ),
        [2],
    ),
    "500,000 strings": (
        TableFormat.XLSX,
        lambda: packed(
            {
                SHEET: sheet(HEADER, '<c r="A2" t="s"><v>499999</v></c>'),
                STRINGS: f"<sst {MAIN}>"
                + "".join(f"<si><t>{n}</t></si>" for n in range(500_000))
                + "</sst>",
            }
        ),
        ["499999"],
    ),
    "deep XML": (
        TableFormat.XLSX,
        lambda: formatted(number("A2", 1) + "<r>" * 30_000 + "</r>" * 30_000),
        [1],
    ),
    "a long attribute": (
        TableFormat.XLSX,
        lambda: formatted(f'<c r="A2" x="{os.urandom(4_000_000).hex()}"><v>1</v></c>'),
        [1],
    ),
    "a long number format": (
        TableFormat.XLSX,
        lambda: packed(
            {
                SHEET: sheet(HEADER, number("A2", 1, style=1)),
                STYLES: styles("&quot;%&quot;[Red]" * 10_000),
            }
        ),
        [1],
    ),
    "names of parts that lead elsewhere": (
        TableFormat.XLSX,
        lambda: packed(
            {
                SHEET: sheet(HEADER, number("A2", 1)),
                "../../evil": "x",
                "/etc/evil": "x",
                "xl/vbaProject.bin": b"macro",
                "xl/externalLinks/externalLink1.xml": "<a/>",
            }
        ),
        [1],
    ),
    "a number beyond all numbers": (
        TableFormat.JSON,
        lambda: b'[{"Name":1e400}]',
        [None],
    ),
    "what is no number": (TableFormat.XLSX, lambda: formatted(number("A2", "NaN")), [None]),
    "rows of all kinds": (
        TableFormat.NDJSON,
        lambda: b'{"Name":1}\n[1,2]\n"x"\nnull\n{"Name":{"b":[]}}\n',
        [1, None, None, None, None],
    ),
    "characters that PostgreSQL cannot hold": (
        TableFormat.CSV,
        lambda: b"Na\0me\n\0\n",
        [None],
    ),
}


@pytest.mark.long
@pytest.mark.takes(seconds=8)
@pytest.mark.parametrize(
    ("file_format", "make", "kind", "said"), REFUSED.values(), ids=REFUSED.keys()
)
async def test_a_hostile_file_is_refused(
    tmp_path: Path, file_format: TableFormat, make: Make, kind: ErrorKind, said: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(make())
    with pytest.raises(SourceProblem, match=said) as problem:
        await described(path, file_format)
    assert problem.value.kind is kind


@pytest.mark.parametrize(("file_format", "make", "expected"), READ.values(), ids=READ.keys())
async def test_a_harmless_file_that_looks_hostile_is_read(
    tmp_path: Path, file_format: TableFormat, make: Make, expected: list[Any]
) -> None:
    path = tmp_path / "file"
    path.write_bytes(make())
    found = await described(path, file_format)
    assert [row.get("Name") for row in found["rows"]] == expected


async def described(path: Path, file_format: TableFormat) -> Any:
    """The description of a file, by a process that took no more than it may."""
    async with reading([path], ReadOptions(file_format), 60) as table:
        watching = asyncio.create_task(_watch(table))
        await asyncio.sleep(0)
        try:
            return await table.describe(20, None)
        finally:
            watching.cancel()
            seconds, memory = await watching
            assert seconds < PROCESSOR_SECONDS
            assert memory < MEMORY


async def _watch(table: Reading) -> tuple[float, int]:
    """Processor time and memory of the reading process, as long as it is there.

    Wall time says little on a machine that does other things: the process yields to all of them.
    """
    process = Path(f"/proc/{table.process_id}")
    base, seen = None, (0.0, 0)
    try:
        while True:
            fields = (process / "stat").read_text().rpartition(") ")[2].split()
            held = int(fields[21]) * 4096
            base = held if base is None else base
            ticks = int(fields[11]) + int(fields[12])
            seen = max(seen[0], ticks / _TICKS), max(seen[1], held - base)
            await asyncio.sleep(0.005)
    except (asyncio.CancelledError, OSError):
        return seen


@pytest.mark.parametrize(
    ("ended_by", "raised", "said"),
    [
        (signal.SIGABRT, SourceProblem, "more memory"),
        (signal.SIGSEGV, SourceProblem, "could not be parsed"),
        (signal.SIGKILL, ReadingEndedError, "killed"),
    ],
)
async def test_a_process_that_ends_says_why(
    tmp_path: Path, ended_by: signal.Signals, raised: type[Exception], said: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\n1\n")
    async with reading([path], ReadOptions(TableFormat.CSV)) as table:
        os.kill(table.process_id, ended_by)
        with pytest.raises(raised, match=said):
            await table.describe(1, None)


async def test_a_file_that_takes_too_long_says_so(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\n" + b"1\n" * 200_000)
    async with reading([path], ReadOptions(TableFormat.CSV), 0.01) as table:
        with pytest.raises(SourceProblem, match=r"longer than 0\.01 seconds") as problem:
            await table.describe(1, None)
        assert problem.value.kind is ErrorKind.TIMEOUT
