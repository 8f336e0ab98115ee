"""The folders of an export of Notion. A page and the folder of its name belong together."""

import re
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

_ID = re.compile(r"\s*([0-9a-f]{32})(?:_all)?$")
_SPOOLED = 1 << 24
"""Bytes of an archive inside another that stay in memory."""
_LONGEST = 1 << 30
"""Bytes of one file of an export."""
_OF_SYSTEMS = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
_ALL = "_all"

Read = Callable[[], bytes]


@dataclass(slots=True)
class Folder:
    """The contents of one directory; `path` is its place below the root of the export."""

    path: str = ""
    pages: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    files: dict[str, Read] = field(default_factory=dict)
    folders: dict[str, "Folder"] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of what becomes an item, in order."""
        items = {*self.pages, *self.tables, *self.folders}
        return sorted(items, key=lambda name: (title_of(name).lower(), name))

    def inside(self, name: str) -> "Folder":
        """The folder of a page or a table; an empty one when there is none."""
        return self.folders.get(name, Folder(f"{self.path}{name}/"))


def title_of(name: str) -> str:
    """The name of a file without the id that Notion puts behind it."""
    return _ID.sub("", name).strip() or name


def id_of(name: str) -> str | None:
    """The id that Notion puts behind the name of a file."""
    match = _ID.search(name)
    return None if match is None else match[1]


@contextmanager
def opened_export(source: Path) -> Iterator[Folder]:
    """The folders of an export; its files are read as long as the block runs."""
    root = Folder()
    with ExitStack() as stack:
        if source.is_dir():
            for path in sorted(path for path in source.rglob("*") if path.is_file()):
                _put(root, PurePosixPath(path.relative_to(source).as_posix()), path.read_bytes)
        else:
            _sort(stack.enter_context(zipfile.ZipFile(source)), root, stack)
        # What is around everything is the export itself, of which a page may list the pages.
        root.files.pop("index.html", None)
        while len(root.folders) == 1 and not (root.pages or root.tables or root.files):
            (root,) = root.folders.values()
            root.files.pop("index.html", None)
        _settle(root, "")
        yield root


def _sort(archive: zipfile.ZipFile, root: Folder, stack: ExitStack) -> None:
    """Put the files of an archive into folders; a large export is zips inside a zip."""
    for info in archive.infolist():
        if info.is_dir() or info.file_size > _LONGEST:
            continue
        path = PurePosixPath(info.filename)
        if path.suffix == ".zip" and len(path.parts) == 1:
            spooled = stack.enter_context(tempfile.SpooledTemporaryFile(_SPOOLED))  # noqa: SIM115
            with archive.open(info) as nested:
                while piece := nested.read(_SPOOLED):
                    spooled.write(piece)
            _sort(stack.enter_context(zipfile.ZipFile(spooled)), root, stack)
        else:
            _put(root, path, partial(archive.read, info))


def _put(root: Folder, path: PurePosixPath, read: Read) -> None:
    parts = [unicodedata.normalize("NFC", part) for part in path.parts]
    name = parts[-1]
    if "__MACOSX" in parts or name in _OF_SYSTEMS or name.startswith("._"):
        return
    folder = root
    for part in parts[:-1]:
        folder = folder.folders.setdefault(part, Folder())
    stem, _, suffix = name.rpartition(".")
    if suffix == "md" and stem:
        folder.pages[stem] = _text(read())
    elif suffix == "csv" and stem:
        folder.tables[stem] = _text(read())
    else:
        folder.files[name] = read


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig", "replace")


def _settle(folder: Folder, path: str) -> None:
    """Say where folders are, whose names may lack the ids that pages have."""
    folder.path = path
    for name in [table for table in folder.tables if table.endswith(_ALL)]:
        # The file with all rows is the one whose name says so; the other is one view of them.
        folder.tables[name.removesuffix(_ALL)] = folder.tables.pop(name)
    for name in list(folder.folders):
        known = {*folder.pages, *folder.tables}
        if name not in known:
            named = [table for table in known - folder.folders.keys() if title_of(table) == name]
            if len(named) == 1:
                folder.folders[named[0]] = folder.folders.pop(name)
                _settle(folder.folders[named[0]], f"{path}{name}/")
                continue
        _settle(folder.folders[name], f"{path}{name}/")
