"""Under which names Temporal and people know a run, on every run's `metadata`."""

from typing import Any

from models.core.base import Id, JsonObject
from runtime.families import temporal_ui_url
from runtime.settings import Settings


def temporal_link(settings: Settings, workflow_id: str) -> JsonObject:
    """The execution of a workflow id: always the newest, so its own run id is left open."""
    url = None
    if settings.temporal_ui_url is not None:
        url = temporal_ui_url(settings.temporal_ui_url, settings.temporal_namespace, workflow_id)
    return {"workflowId": workflow_id, "runId": None, "uiUrl": url}


def page_url(run_id: Id) -> str:
    """The page of an automation run, on the host that serves the API."""
    return f"/runs/{run_id}"


def add_links(settings: Settings, run: Any) -> None:
    """Add both to the metadata of an automation run."""
    run.metadata["temporal"] = temporal_link(settings, run.metadata["temporalWorkflowId"])
    run.metadata["pageUrl"] = page_url(run.id)
