"""The kinds of rows that bundles have, in the order in which they are applied.

A row stands behind those it needs. A noun with rows of a workspace adds its kinds here, or its
table to `LEFT_OUT`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from models.automation.actions.bundle import ACTIONS
from models.automation.automations.bundle import AUTOMATIONS, VERSIONS
from models.content.files.bundle import FILES
from models.content.grants.bundle import GRANTS
from models.content.items.bundle import ITEMS
from models.core.bundles.kinds import BundleKind
from models.core.bundles.rules import Stage
from models.data.fields.bundle import DATABASES, FIELDS
from models.data.forms.bundle import FORMS, SUBMISSIONS
from models.data.record_comments.bundle import RECORD_COMMENTS
from models.data.record_templates.bundle import RECORD_TEMPLATES
from models.data.records.bundle import BLOCKS, LINKS, RECORDS, SURFACE_COMMENTS, SURFACES
from models.data.time_entries.bundle import TIME_ENTRIES
from models.data.views.bundle import VIEWS
from models.people.home_layouts.bundle import HOME_LAYOUTS
from models.people.members.bundle import MEMBERS
from models.sources.data_sources.bundle import DATA_SOURCES
from models.sources.mounts.bundle import MOUNTS

KINDS: tuple[BundleKind, ...] = (
    MEMBERS,
    ITEMS,
    GRANTS,
    DATABASES,
    FIELDS,
    VIEWS,
    RECORDS,
    LINKS,
    FILES,
    SURFACES,
    BLOCKS,
    SURFACE_COMMENTS,
    RECORD_TEMPLATES,
    RECORD_COMMENTS,
    FORMS,
    SUBMISSIONS,
    ACTIONS,
    AUTOMATIONS,
    VERSIONS,
    DATA_SOURCES,
    MOUNTS,
    TIME_ENTRIES,
    HOME_LAYOUTS,
)

KIND_OF = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Step:
    """Kinds that are applied from one file in one reading of it."""

    stage: Stage
    file: str
    kinds: Sequence[BundleKind]

    def reads(self, path: str) -> bool:
        """True when a file is this step's; `path` is what stands behind `workspaces/<id>/`."""
        head, _, tail = self.file.partition("{database_id}")
        return path == head if not tail else path.startswith(head) and path.endswith(tail)


def steps() -> Iterator[Step]:
    """The steps of an import, in order."""
    for (stage, file), kinds in groupby(KINDS, lambda kind: (kind.stage, kind.file)):
        yield Step(stage, file, tuple(kinds))
