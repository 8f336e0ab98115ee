"""The tables of experiments."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index, text
from sqlalchemy.dialects.postgresql import BYTEA, JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.bounds import Bound
from models.people.experiments.rules import AssignmentUnit, ExperimentStatus, TargetType
from runtime.postgresql.schema import Timestamp, one_of, partial_index, table_of

_NOT_ARCHIVED = text("status <> 'archived'")


class Experiment(SQLModel, table=True):
    """An experiment of the whole platform; `variants` are objects with id, label and split."""

    __tablename__ = "experiment"
    __table_args__ = (
        ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        one_of("target_type", TargetType),
        one_of("assignment_unit", AssignmentUnit),
        one_of("status", ExperimentStatus),
        Index("uq_experiment_flag_key", "flag_key", unique=True, postgresql_where=_NOT_ARCHIVED),
        Index(
            "uq_experiment_target",
            "target_type",
            "target_key",
            unique=True,
            postgresql_where=_NOT_ARCHIVED,
        ),
        Index("ix_experiment_created_at_id", "created_at", "id"),
        partial_index("ix_experiment_assigning", "id", where="status IN ('scheduled', 'running')"),
    )

    id: Id = Field(primary_key=True)
    name: str
    hypothesis: str | None = None
    target_type: str
    target_key: str | None = None
    flag_key: str | None = None
    audience: str
    assignment_unit: str
    primary_metric: str | None = None
    guardrail_metric: str | None = None
    status: str
    allocation: float
    started_at: datetime | None = Field(default=None, sa_type=Timestamp)
    ends_at: datetime | None = Field(default=None, sa_type=Timestamp)
    winner: str | None = None
    variants: list[Any] = Field(sa_type=JSONB)
    created_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class ExperimentUnit(SQLModel, table=True):
    """A unit that has met its variant, and when it first did, converted and had an error.

    `unit` is a digest: what a unit is called is not kept.
    """

    __tablename__ = "experiment_unit"
    __table_args__ = (
        ForeignKeyConstraint(["experiment_id"], ["experiment.id"], ondelete="CASCADE"),
        Index("ix_experiment_unit_experiment_id_variant", "experiment_id", "variant"),
    )

    experiment_id: Id = Field(primary_key=True)
    unit: bytes = Field(sa_type=BYTEA, primary_key=True)
    variant: str
    exposed_at: datetime = Field(sa_type=Timestamp)
    converted_at: datetime | None = Field(default=None, sa_type=Timestamp)
    failed_at: datetime | None = Field(default=None, sa_type=Timestamp)


experiment = table_of(Experiment)
experiment_unit = table_of(ExperimentUnit)

EXPERIMENTS = Bound(
    experiment,
    1_000,
    "experiments",
    by=(),
    conditions=(
        experiment.c.status != ExperimentStatus.ARCHIVED,
        experiment.c.target_type != TargetType.AUTOMATION_VERSION,
    ),
    remedy="Archive some first.",
)
"""Experiments of releases of versions do not count: each automation has one at most."""
