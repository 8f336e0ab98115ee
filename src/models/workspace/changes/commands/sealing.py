"""The credentials of a change set: sealed while it waits, and gone when it is closed."""

import json
from collections.abc import Sequence

from models.core.base import Id
from models.core.credentials import GIVE_AGAIN, with_values
from models.core.problems import refuse
from models.workspace.changes.queries import read_operations
from models.workspace.changes.rules.credentials import operation_credentials
from models.workspace.changes.shapes import Operation
from models.workspace.changes.tables import ChangeSet, credentials_place
from runtime.crypto import KeyRing
from runtime.errors import Detail


def sealed(
    keys: KeyRing, change_id: Id, operations: Sequence[Operation]
) -> tuple[list[Operation], bytes | None]:
    """The operations without credentials, and those sealed; None when there are none.

    Raises `ValidationError` for one that was copied from where it is shown hidden.
    """
    masked_operations, entries, problems = [], [], []
    for index, operation in enumerate(operations):
        credentials = operation_credentials(operation.kind, operation.input)
        for each in credentials:
            entries.append([index, each.place, each.value])
            if each.value == each.mask:
                path = ".".join(map(str, ("operations", index, "input", *each.place)))
                problems.append(Detail(path, GIVE_AGAIN))
        hidden = with_values(operation.input, [(each.place, each.mask) for each in credentials])
        masked_operations.append(operation.model_copy(update={"input": hidden}))
    refuse(problems)
    if not entries:
        return masked_operations, None
    return masked_operations, keys.seal(json.dumps(entries).encode(), credentials_place(change_id))


def opened(keys: KeyRing, row: ChangeSet) -> list[Operation]:
    """The operations as they were proposed. Raises `UnreadableError`."""
    operations = read_operations(row)
    if row.sealed_credentials is None:
        return operations
    for index, place, value in json.loads(
        keys.unseal(row.sealed_credentials, credentials_place(row.id))
    ):
        one = operations[index]
        given = with_values(one.input, [(tuple(place), value)])
        operations[index] = one.model_copy(update={"input": given})
    return operations
