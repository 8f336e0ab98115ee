"""Changes of records on the wire."""

from models.core.access.rules import PrincipalType
from models.core.base import Id, JsonObject, Moment, Nullable, Shape
from models.data.record_changes.rules import ChangeKind


class RecordChangeShape(Shape):
    """One change: `before` and `after` hold the values of the keys it changed.

    A key missing on one side had no value there; the values of `omittedKeys` were too long to
    keep. `runId` is the automation run that wrote, if one did.
    """

    id: Id
    kind: ChangeKind
    at: Moment
    actor_user_id: Id | None
    principal_type: PrincipalType
    run_id: Id | None
    changed_keys: list[str]
    omitted_keys: list[str]
    before: JsonObject | None
    after: JsonObject | None


class RecordHistory(Shape):
    changes: list[RecordChangeShape]
    cursor: Nullable[str]
