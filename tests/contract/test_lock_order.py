"""Every operation takes the locks of a workspace in one order, so that no two of them deadlock."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest

from cli.supervisor.development import DevelopmentIssuer
from models.content.items import commands as items
from models.core import keys as field_keys
from models.data.fields import commands as fields
from runtime.postgresql.statements import lock_name
from tests.contract.callers import caller_of
from tests.contract.furnished import Furnished
from tests.contract.operations import example_body
from tests.contract.test_dry_runs import WRITING, tried
from tests.support.cells import cells

pytestmark = [pytest.mark.takes(seconds=60), pytest.mark.long]

TREE, KEYS, FIELDS, SCHEMA = ORDER = (
    "the tree",
    "the keys of fields",
    "the fields of the workspace",
    "the fields of a database",
)
_LOCKS: Mapping[str, Any] = {
    TREE: (items, "_SHARED", "_EXCLUSIVE"),
    KEYS: (field_keys, "_SHARE_KEYS", "_OWN_KEYS"),
    SCHEMA: (fields, "_SHARED", "_TRY_SHARED_LOCK", "_ALONE"),
}

Taken = dict[int, list[str]]
"""The locks of each transaction, in the order in which it took them first."""


class Noting:
    """A statement that takes a lock, and notes that."""

    def __init__(self, statement: Any, lock: str, taken: Taken) -> None:
        self._statement = statement
        self._lock = lock
        self._taken = taken

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._statement, name)

        async def noting(work: Any, *arguments: Any) -> Any:
            note(self._taken, self._lock, work)
            return await method(work, *arguments)

        return noting


def note(taken: Taken, lock: str, work: Any) -> None:
    if lock not in taken[id(work)]:
        taken[id(work)].append(lock)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    found: Taken = defaultdict(list)
    for lock, (module, *names) in _LOCKS.items():
        for name in names:
            monkeypatch.setattr(module, name, Noting(getattr(module, name), lock, found))

    async def noting(work: Any, name: str) -> None:
        note(found, FIELDS, work)
        await lock_name(work, name)

    monkeypatch.setattr(fields, "lock_name", noting)
    return found


async def test_locks_are_taken_in_one_order(
    own: Furnished, issuer: DevelopmentIssuer, taken: Taken
) -> None:
    seen: set[str] = set()
    with cells() as named:
        for operation in WRITING:
            with named(operation.id):
                taken.clear()
                caller = caller_of(own, operation, issuer)
                await tried(caller, own, operation, example_body(operation, own))
                for locks in taken.values():
                    assert locks == sorted(locks, key=ORDER.index)
                    seen.update(locks)
    assert seen == set(ORDER)
