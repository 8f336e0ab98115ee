"""The type of a file's row, for whoever reads its bytes."""

from datetime import datetime
from typing import Protocol

from models.core.base import Id


class FileRow(Protocol):
    """A file, with the key of its bytes in the object store."""

    id: Id
    workspace_id: Id
    name: str
    mime_type: str
    byte_size: int
    sha256: bytes
    object_key: str
    created_by_user_id: Id
    private: bool
    created_at: datetime
