"""Links in the `metadata` of a run: its Temporal workflow and its page."""

from models.automation.automation_runs.shapes import AutomationRunShape
from models.core.base import JsonObject
from models.core.page_addresses import run_page
from runtime.families import temporal_ui_url
from runtime.settings import Settings


def temporal_link(settings: Settings, workflow_id: str) -> JsonObject:
    """The newest execution of a workflow id, and where the Temporal UI shows it if there is one."""
    if settings.temporal_ui_url is None:
        return {"workflowId": workflow_id}
    url = temporal_ui_url(settings.temporal_ui_url, settings.temporal_namespace, workflow_id)
    return {"workflowId": workflow_id, "uiUrl": url}


def add_links(settings: Settings, run: AutomationRunShape) -> None:
    """Add both to the metadata of an automation run."""
    run.metadata["temporal"] = temporal_link(settings, run.metadata["temporalWorkflowId"])
    run.metadata["pageUrl"] = run_page(run.id)
