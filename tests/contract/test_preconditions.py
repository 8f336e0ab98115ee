"""Every operation that reads `If-Match` says so, and refuses one that cannot be read."""

from pathlib import Path
from typing import Any

import pytest

from tests.contract.furnished import Furnished
from tests.contract.operations import Operation, call, operations
from tests.support.document import DOCUMENT

SOURCES = Path(__file__).parents[2] / "src" / "api"


def conditional(operation: Operation) -> bool:
    described: dict[str, Any] = DOCUMENT["paths"][operation.path][operation.method]
    return any(one["name"] == "If-Match" for one in described["parameters"])


CONDITIONAL = [one for one in operations() if conditional(one)]


def test_one_place_reads_the_header() -> None:
    """A proposed request keeps it, for the time when it is applied."""
    readers = {path.name for path in SOURCES.rglob("*.py") if '"if-match"' in path.read_text()}
    assert readers == {"pipeline.py", "dry_runs.py"}
    assert len(CONDITIONAL) >= 11


@pytest.mark.parametrize("operation", CONDITIONAL, ids=lambda one: one.id)
async def test_an_unreadable_condition_is_refused(own: Furnished, operation: Operation) -> None:
    answer = await call(own.client, operation, own, headers={"If-Match": "unreadable"})
    assert answer.status_code == 400, answer.text
    assert [one["path"] for one in answer.json()["details"]] == ["If-Match"]
