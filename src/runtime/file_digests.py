"""The size and the digest of a file."""

import hashlib
from pathlib import Path


def size_and_digest(path: Path) -> tuple[int, bytes]:
    """The bytes that a file has, and their SHA-256; to be called on a thread."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
        return file.tell(), digest
