"""Tables of pauses, and of the intents that rest under them."""

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, ForeignKeyConstraint, Index, UniqueConstraint, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.pauses.rules import PauseCause, PauseSubject
from runtime.postgresql.schema import BELONGS_TO, Timestamp, one_of, partial_index, table_of

_SUBJECT = ("workspace_id", "subject_id")


class Pause(SQLModel, table=True):
    """A pause of an automation or a workspace, until nothing rests under it.

    From `resumed_at` on it lets go of what rests, at `rate` starts a minute or at once; new work
    stands behind that. At `due_at` a worker has something to do about it.
    """

    __tablename__ = "pause"
    __table_args__ = (
        UniqueConstraint("subject_id", "cause"),
        one_of("subject_kind", PauseSubject),
        one_of("cause", PauseCause),
        partial_index("ix_pause_due_at", "due_at", where="due_at IS NOT NULL"),
        Index("ix_pause_workspace_id", "workspace_id"),
        {"info": {BELONGS_TO: {"automation": _SUBJECT, "workspace": _SUBJECT}}},
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    subject_kind: str
    subject_id: Id
    cause: str
    reason: str
    paused_by_user_id: Id | None = None
    paused_at: datetime = Field(sa_type=Timestamp)
    resumed_at: datetime | None = Field(default=None, sa_type=Timestamp)
    rate: int | None = None
    due_at: datetime | None = Field(default=None, sa_type=Timestamp)


class RestingIntent(SQLModel, table=True):
    """An intent that rests under a pause of one of its `subject_ids`, and then joins the outbox.

    No relay and no sweep reads this table, so that what rests costs nothing.
    """

    __tablename__ = "resting_intent"
    __table_args__ = (
        ForeignKeyConstraint(["pause_id"], ["pause.id"], ondelete="CASCADE"),
        Index(
            "ix_resting_intent_pause_id_accepted_at",
            "pause_id",
            "accepted_at",
            "work_id",
            "intent",
        ),
        Index("ix_resting_intent_workspace_id", "workspace_id"),
        {"info": {BELONGS_TO: {"automation_run": ("workspace_id", "work_id")}}},
    )

    work_id: Id = Field(primary_key=True)
    intent: str = Field(primary_key=True)
    pause_id: Id
    workspace_id: Id
    family: str
    request: dict[str, Any] = Field(sa_type=JSONB)
    subject_ids: list[Id] = Field(sa_type=ARRAY(Uuid))
    accepted_at: datetime = Field(sa_type=Timestamp)


pause = table_of(Pause)
resting_intent = table_of(RestingIntent)
