"""Every prepared statement can be written for the driver, its constants included."""

import gc
import importlib
from pathlib import Path

from runtime.prepared_statement import PreparedStatement
from tests.house.source import SRC, files


def _module(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


def test_every_prepared_statement_compiles() -> None:
    for path in files():
        if path.relative_to(SRC).parts[0] in {"models", "activities", "runtime"} and (
            "PreparedStatement(" in path.read_text(encoding="utf-8")
        ):
            importlib.import_module(_module(path))
    statements = [one for one in gc.get_objects() if type(one) is PreparedStatement]
    assert len(statements) > 50
    for statement in statements:
        assert statement._compiled.text
