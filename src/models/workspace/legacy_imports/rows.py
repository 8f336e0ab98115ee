"""The type of the row of a run, for whoever reads its bundle."""

from datetime import datetime
from typing import Protocol

from models.core.base import Id


class ImportRunRow(Protocol):
    """A run with its bundle: the key in the object store, and the digest it had."""

    id: Id
    bundle_object_key: str
    bundle_checksum: str
    approved_at: datetime | None
