"""Stored files on the wire (interface, Stored file)."""

from models.core.base import Id, Moment, Nullable, Shape


class StoredFile(Shape):
    """A file with the path that gives its bytes to whoever holds it."""

    file_id: Id
    name: str
    mime_type: str
    byte_size: int
    download_url: str
    created_at: Moment


class StoredFileList(Shape):
    files: list[StoredFile]
    cursor: Nullable[str]
