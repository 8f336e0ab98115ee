"""Files of the object store, copied to where processes can read them."""

from pathlib import Path

from models.content.files.queries import find_file
from models.core.base import Id, JsonObject
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem
from runtime.database import UnitOfWork
from runtime.object_store import ObjectStore


async def file_at(
    work: UnitOfWork, store: ObjectStore, workspace_id: Id, config: JsonObject, directory: Path
) -> Path:
    """The stored file that a config names, in a directory. Raises SourceProblem when it is gone."""
    key = await object_key(work, workspace_id, config)
    return await copied(store, key, directory / "file")


async def object_key(work: UnitOfWork, workspace_id: Id, config: JsonObject) -> str:
    """The object of the file that a config names. Raises SourceProblem when it is gone."""
    found = await find_file(work, workspace_id, Id(config["fileId"]))
    if found is None:
        raise SourceProblem(ErrorKind.FETCH, "The file is gone. Name another fileId.", final=True)
    return found.object_key


async def copied(store: ObjectStore, key: str, path: Path) -> Path:
    """An object in a file. Raises SourceProblem when it is gone."""
    with path.open("wb") as file:
        try:
            async for piece in store.get(key):
                file.write(piece)
        except FileNotFoundError:
            message = "The content of the file is gone."
            raise SourceProblem(ErrorKind.FETCH, message, final=True) from None
    return path
