"""Rows that other rows are checked against."""

from collections.abc import Mapping, Sequence

from models.core.base import Id
from models.core.bundles.findings import Findings
from models.core.bundles.kinds import Row
from models.workspace.bundles.lines import read_rows
from models.workspace.bundles.registry import KIND_OF, KINDS
from models.workspace.bundles.rules import home
from models.workspace.bundles.unpacking import Contents, read_lines
from runtime.object_store import ObjectStore


async def load_context_rows(
    store: ObjectStore, contents: Contents, workspace_id: Id
) -> Mapping[str, Sequence[Row]]:
    """The rows of the kinds that others are checked with, of one workspace of a bundle."""
    by_kind: dict[str, list[Row]] = {}
    for name in {kind.beside for kind in KINDS if kind.beside is not None}:
        kind = KIND_OF[name]
        rows: list[Row] = []
        part = contents.parts.get(home(workspace_id) + kind.file)
        for chunk in range(0 if part is None else part.chunks):
            assert part is not None
            lines = await read_lines(store, part, chunk)
            rows += read_rows(lines, [kind], Findings())[name]
        by_kind[name] = rows
    return by_kind
