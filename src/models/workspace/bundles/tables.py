"""The table that remembers what became of the rows of bundles."""

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import table_of


class ImportId(SQLModel, table=True):
    """The id that a row of a bundle gets, or has got.

    `entry_id` is the workspace of the import run. Checking writes the rows, applying and rolling
    back read them. A person has the kind `user`, and the id of the user who stands for them.
    """

    __tablename__ = "import_id_map"
    __table_args__ = (
        Index("ix_import_id_map_run_id", "run_id"),
        Index(
            "ix_import_id_map_entry_id_source_kind_target_id",
            *("entry_id", "source_kind", "target_id"),
        ),
    )

    run_id: Id
    entry_id: Id = Field(primary_key=True)
    source_id: Id = Field(primary_key=True)
    source_kind: str = Field(primary_key=True)
    target_id: Id


import_id_map = table_of(ImportId)
