"""Every prepared statement can be written for the driver, its constants included."""

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from runtime.prepared_statement import PreparedStatement
from tests.house.source import SRC, files


def _statements(path: Path) -> Iterator[PreparedStatement]:
    """The statements that a module of ours binds, by name or in a mapping."""
    name = ".".join(path.relative_to(SRC).with_suffix("").parts)
    for value in vars(importlib.import_module(name)).values():
        for one in value.values() if isinstance(value, Mapping) else [value]:
            if isinstance(one, PreparedStatement):
                yield one


def test_every_prepared_statement_compiles() -> None:
    modules = [path for path in files() if "PreparedStatement(" in path.read_text("utf-8")]
    statements = [one for path in modules for one in _statements(path)]
    assert len(statements) > 50
    for statement in statements:
        assert statement._compiled.text
