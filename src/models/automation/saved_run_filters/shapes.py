"""Saved filters on the wire."""

from typing import Annotated

from models.automation.automation_runs.run_queries import WorkspaceRunQuery
from models.core.base import Id, Input, JsonObject, Label, Moment, Nullable, Shape, example
from models.core.documented import documented_as

MAX_FILTERS = 100
"""Shared ones of a workspace, and as many of each member."""


class CreateRunFilter(Input):
    """Body of create run filter: the parameters of a list of runs, under a name."""

    model_config = example(
        {"label": "Declined cards", "query": {"status": "failed", "errorCode": "declined"}}
    )

    label: Label
    query: WorkspaceRunQuery
    shared: bool = False


class UpdateRunFilter(Input):
    """Body of update run filter; a key that is left out stays as it is."""

    model_config = example({"label": "Declined cards"})

    label: Label | None = None
    query: WorkspaceRunQuery | None = None


class RunFilterShape(Shape):
    """A saved filter; `query` has the parameters of the list."""

    id: Id
    workspace_id: Id
    label: str
    shared: bool
    query: Annotated[JsonObject, documented_as("WorkspaceRunQuery")]
    created_at: Moment
    updated_at: Moment


class RunFilterList(Shape):
    """The saved filters that the caller sees, by name."""

    filters: list[RunFilterShape]
    cursor: Nullable[str]


class DeletedRunFilter(Shape):
    id: Id
