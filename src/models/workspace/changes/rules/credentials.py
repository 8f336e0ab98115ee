"""Credentials in operations: they go in sealed, and are shown hidden (ADR 0048). Pure."""

from collections.abc import Iterator

from models.automation.automations.rules.language.credentials import written
from models.core.base import JsonObject
from models.core.credentials import Credential, Place, credentials_in
from models.workspace.changes.rules.kinds import OperationKind
from models.workspace.changes.rules.references import is_reference

_CALLING = frozenset(
    {
        OperationKind.CREATE_ITEM,
        OperationKind.CREATE_ACTION,
        OperationKind.CREATE_AUTOMATION,
        OperationKind.UPDATE_AUTOMATION,
    }
)
"""Only what calls other servers is looked through."""


def operation_credentials(kind: OperationKind, values: JsonObject) -> list[Credential]:
    """The credentials that stand in an input."""
    return credentials_in(values, _written) if kind in _CALLING else []


def _written(value: object) -> Iterator[tuple[Place, object]]:
    if not is_reference(value):
        yield from written(value)
