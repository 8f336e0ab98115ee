"""The chunks of a workspace in a bundle that was taken apart, in the order of their import."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models.core.bundles.kinds import BundleKind
from models.workspace.bundles.registry import Step, steps
from models.workspace.bundles.rules import home, is_blob
from models.workspace.bundles.unpacking import Contents, Part, read_lines
from models.workspace.legacy_imports.rules import ImportStage
from runtime.object_store import ObjectStore


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows that one transaction works on."""

    step: Step
    part: Part
    number: int

    @property
    def kinds(self) -> Sequence[BundleKind]:
        return self.step.kinds

    async def read(self, store: ObjectStore) -> list[bytes]:
        """The rows, as lines."""
        return await read_lines(store, self.part, self.number)


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks of a workspace; `unread` are files that no step of an import reads."""

    all: Sequence[Chunk]
    unread: Sequence[str] = ()

    def of(self, stage: ImportStage) -> "Chunks":
        """The chunks of one stage."""
        return Chunks([one for one in self.all if one.step.stage.value == stage.value])

    @property
    def stages(self) -> set[str]:
        """The stages that have chunks."""
        return {one.step.stage.value for one in self.all}

    def sample(self) -> Iterator[Chunk]:
        """The last chunk of each step."""
        last = {id(one.step): one for one in self.all}
        yield from last.values()


def chunks_of(contents: Contents, workspace_id: str) -> Chunks:
    """The chunks of a workspace, by its id in the bundle."""
    place = home(workspace_id)
    parts = {
        path.removeprefix(place): part
        for path, part in sorted(contents.parts.items())
        if path.startswith(place) and not is_blob(path)
    }
    chunks, read = [], {"workspace.json"}
    for step in steps():
        paths = [path for path in parts if step.reads(path)]
        read.update(paths)
        chunks += [
            Chunk(step, parts[path], number)
            for path in paths
            for number in range(parts[path].chunks)
        ]
    return Chunks(chunks, sorted(parts.keys() - read))
