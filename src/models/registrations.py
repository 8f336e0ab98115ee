"""Registrations of resources with resources of lower domains, which must not import them.

Every process that serves requests or executes activities calls `register_models` once, before it
does so; tests call it once for the session. A resource that must hear of what happens below it adds
its line here.
"""

from models.automation.action_runs.execution import cancel_runs_of
from models.automation.actions.store import check_visible, mail_actions
from models.automation.automation_runs.canary_releases import AutomationVersions
from models.automation.automation_runs.open_runs import on_run_end
from models.automation.automation_runs.queries import find_due_waits_with, last_triggered_at
from models.automation.automations.commands import automations_closed, automations_placed
from models.automation.automations.graphs import find_mail_actions_with
from models.automation.automations.queries import find_last_run_with
from models.automation.waits.queries import due_waits
from models.content.items.commands import on_placement_change
from models.content.items.queries import viewers_among
from models.content.items.rules import ItemKind
from models.content.surfaces.changes import register_reference
from models.core.lifecycle.lost_workers import find_last_sign_with, find_lost_workers_with
from models.data.fields.queries import check_reference_with, seen_databases
from models.data.fields.rules.fields import FieldKind
from models.data.record_templates import template_prefills
from models.data.records.queries import seen_records
from models.data.records.write import find_prefills_with
from models.data.time_entries import writes
from models.data.views.queries import seen_views
from models.messages.notifications.commands import find_viewers_with
from models.people.experiments.queries import on_target
from models.people.experiments.rules import TargetType
from models.people.members import on_member_removal
from models.people.workspaces import on_workspace_deletion
from models.sources.data_sources.tables import data_sources_closed, data_sources_placed
from models.sources.mounts.commands import mounts_closed, mounts_placed
from models.workspace.system import last_seen, lost_since


def register_models() -> None:
    """Register all handlers; calling it again changes nothing."""
    on_placement_change(ItemKind.AUTOMATION, automations_placed)
    on_workspace_deletion(automations_closed)
    on_target(TargetType.AUTOMATION_VERSION, AutomationVersions())
    on_placement_change(ItemKind.DATA_SOURCE, data_sources_placed)
    on_workspace_deletion(data_sources_closed)
    on_placement_change(ItemKind.EXTERNAL_RESOURCE, mounts_placed)
    on_workspace_deletion(mounts_closed)
    on_workspace_deletion(writes.end_entries_of_workspace)
    on_member_removal(writes.end_entries_of_member)
    register_reference("database", seen_databases)
    register_reference("record", seen_records)
    register_reference("view", seen_views)
    on_run_end(cancel_runs_of)
    find_last_run_with(last_triggered_at)
    find_mail_actions_with(mail_actions)
    find_prefills_with(template_prefills)
    find_viewers_with(viewers_among)
    find_due_waits_with(due_waits)
    find_lost_workers_with(lost_since)
    find_last_sign_with(last_seen)
    check_reference_with(FieldKind.BUTTON, check_visible)
