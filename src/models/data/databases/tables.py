"""The table of values that a conversion of a field has prepared."""

from datetime import datetime
from typing import Any

from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import Timestamp, same_workspace, table_of


class FieldConversionValue(SQLModel, table=True):
    """A value converted by the job `job_id`, not yet applied to its record; None when it is lost.

    `record_updated_at` is the `updated_at` of the record when its value was converted.
    """

    __tablename__ = "field_conversion_value"
    __table_args__ = (same_workspace("job_id", "job.id", ondelete="CASCADE"),)

    job_id: Id = Field(primary_key=True)
    record_id: Id = Field(primary_key=True)
    workspace_id: Id
    value: Any = Field(default=None, sa_type=JSONB(none_as_null=True), nullable=True)
    record_updated_at: datetime = Field(sa_type=Timestamp)


conversion_value = table_of(FieldConversionValue)
