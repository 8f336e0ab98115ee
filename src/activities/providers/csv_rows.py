"""Rows of a provider's table as CSV (RFC 4180), page by page."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from activities.providers.adapter import (
    MAX_DOWNLOAD_BYTES,
    MAX_READ_BYTES,
    ProblemKind,
    ProviderProblem,
)
from activities.providers.web import shown_text

Row = Mapping[str, str]
"""The cells of a row, by the names of their columns; empty ones are left out."""


async def csv_text(columns: Sequence[str], pages: AsyncIterator[Sequence[Row]]) -> str:
    """Rows as they are shown. Raises ProviderProblem beyond MAX_READ_BYTES."""
    parts = [part async for part in _parts(columns, pages, MAX_READ_BYTES)]
    return b"".join(parts).decode()


async def write_csv(
    path: Path, columns: Sequence[str], pages: AsyncIterator[Sequence[Row]]
) -> None:
    """Rows in a file. Raises ProviderProblem beyond MAX_DOWNLOAD_BYTES."""
    with await asyncio.to_thread(path.open, "wb") as file:
        async for part in _parts(columns, pages, MAX_DOWNLOAD_BYTES):
            await asyncio.to_thread(file.write, part)


async def _parts(
    columns: Sequence[str], pages: AsyncIterator[Sequence[Row]], limit: int
) -> AsyncIterator[bytes]:
    written = 0
    yield _lines([columns])
    async for page in pages:
        part = _lines([[row.get(name, "") for name in columns] for row in page])
        written += len(part)
        if written > limit:
            message = f"The table is larger than {limit} bytes."
            raise ProviderProblem(ProblemKind.TOO_LARGE, message)
        yield part


def _lines(rows: Sequence[Sequence[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([[shown_text(cell) for cell in row] for row in rows])
    return out.getvalue().encode("utf-8", "replace")
