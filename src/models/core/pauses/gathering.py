"""Bringing starts to rest that were accepted before a pause, and that no relay has claimed."""

from sqlalchemy import Select, Uuid, cast, delete, func, insert, literal, or_, select
from sqlalchemy.dialects.postgresql import array

from models.core.pauses.rules import CHUNK, PauseSubject
from models.core.pauses.tables import Pause, resting_intent
from runtime.database import UnitOfWork
from runtime.families import Family
from runtime.memos import RESTARTS
from runtime.outbox import Intent, outbox

GATHERED = (Family.AUTOMATION_RUN,)
"""Families whose work a pause of an automation or a workspace brings to rest."""

_request = outbox.c.request


async def gather(work: UnitOfWork, holder: Pause, most: int = CHUNK) -> int:
    """Bring some starts to rest under a pause, the oldest first; their number.

    A start that a relay has claimed may have begun, and a run that begins anew goes on to its end.
    """
    unclaimed = _unclaimed(holder).limit(most).with_for_update(skip_locked=True)
    claimed = delete(outbox).where(outbox.c.id.in_(unclaimed)).returning(*outbox.c).cte("claimed")
    own = {
        "work_id": claimed.c.subject_id,
        "intent": claimed.c.intent,
        "pause_id": literal(holder.id, Uuid),
        "workspace_id": claimed.c.workspace_id,
        "family": claimed.c.family,
        "request": claimed.c.request,
        "subject_ids": array(
            [cast(claimed.c.request["resourceId"].astext, Uuid), claimed.c.workspace_id]
        ),
        "accepted_at": claimed.c.created_at,
    }
    resting = (
        insert(resting_intent)
        .from_select(list(own), select(*own.values()))
        .returning(resting_intent.c.work_id)
    )
    rows = await work.rows(select(func.count()).select_from(resting.cte("resting")))
    number: int = rows[0][0]
    return number


def _unclaimed(holder: Pause) -> Select[tuple[int]]:
    resource = _request["resourceId"].astext
    return (
        select(outbox.c.id)
        .where(
            outbox.c.workspace_id == holder.workspace_id,
            outbox.c.intent == Intent.START.value,
            outbox.c.family.in_([family.value for family in GATHERED]),
            outbox.c.attempts == 0,
            ~_request.has_key(RESTARTS),
            _request["source"].astext.is_distinct_from("test"),
            or_(
                literal(holder.subject_kind == PauseSubject.WORKSPACE),
                resource == str(holder.subject_id),
            ),
        )
        .order_by(outbox.c.id)
    )
