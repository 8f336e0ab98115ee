"""One router per noun. A new one adds its two lines here."""

from collections.abc import Sequence

from api.console import files as console_files
from api.console.alert_rules import editing as console_alert_rule_forms
from api.console.alert_rules import routes as console_alert_rules
from api.console.automations import canary as console_canary
from api.console.automations import creation as console_creation
from api.console.automations import drafts as console_drafts
from api.console.automations import pause as console_pause
from api.console.automations import routes as console_automations
from api.console.automations import run_forms as console_run_forms
from api.console.automations import settings as console_automation_settings
from api.console.automations import versions as console_versions
from api.console.changes import routes as console_changes
from api.console.databases import exports as console_exports
from api.console.databases import routes as console_databases
from api.console.decisions import routes as console_decisions
from api.console.home import routes as console_home
from api.console.imports import previews as import_previews
from api.console.imports import routes as console_imports
from api.console.incidents import routes as console_incidents
from api.console.incoming import legacy as legacy_import_pages
from api.console.incoming import routes as console_incoming
from api.console.integrations.routers import ROUTERS as INTEGRATION_PAGES
from api.console.items import routes as console_items
from api.console.items import sharing as console_sharing
from api.console.public_forms import making as form_pages
from api.console.public_forms import questions as question_pages
from api.console.public_forms import routes as public_forms
from api.console.records import editing as console_editing
from api.console.records import files as record_files
from api.console.records import routes as console_records
from api.console.runs import actions as console_run_actions
from api.console.runs import comparison as console_comparison
from api.console.runs import from_node as console_from_node
from api.console.runs import operations as console_run_operations
from api.console.runs import routes as console_runs
from api.console.runs import saved_filters as console_run_filters
from api.console.search import routes as console_search
from api.console.shared import routes as shared_pages
from api.console.sign_in import provider as console_provider
from api.console.sign_in import routes as sign_in
from api.console.sources import previews as source_previews
from api.console.sources import routes as console_sources
from api.console.statistics import routes as console_statistics
from api.console.workspace.routes import ROUTERS as WORKSPACE_PAGES
from api.kernel.routing import Router
from api.routers import service
from api.routers.automation import (
    action_runs,
    actions,
    alert_rules,
    automation_runs,
    automations,
    canaries,
    circuit_breakers,
    incidents,
    run_comparisons,
    run_filters,
    run_operations,
    run_pages,
    run_statistics,
    schedules,
    secrets,
    waits,
    webhooks,
)
from api.routers.content import files, items, surfaces
from api.routers.data import (
    database_copies,
    database_templates,
    databases,
    fields,
    forms,
    record_comments,
    record_templates,
    records,
    time_entries,
    views,
)
from api.routers.data import record_exports as exports
from api.routers.messages import (
    notification_preferences,
    notifications,
    push_devices,
    realtime,
    webhook_endpoints,
    webhook_signing,
    workspace_events,
)
from api.routers.people import (
    api_keys,
    experiments,
    home_layouts,
    me,
    members,
    oauth_clients,
    release_notices,
    workspaces,
)
from api.routers.sources import (
    authorizations,
    connections,
    data_source_runs,
    data_sources,
    mounts,
    outbound_limits,
    resource_imports,
    resources,
    source_run_pages,
    spreadsheet_imports,
)
from api.routers.workspace import (
    ai_runs,
    changes,
    legacy_imports,
    model_settings,
    pauses,
    search,
    share_links,
    starters,
    system,
    workspace_exports,
)

ROUTERS: Sequence[Router] = (
    service.router,
    console_files.router,
    sign_in.router,
    console_provider.router,
    console_home.router,
    console_items.router,
    console_sharing.router,
    console_databases.router,
    console_exports.router,
    console_records.router,
    console_editing.router,
    record_files.router,
    console_imports.router,
    import_previews.router,
    console_sources.router,
    console_statistics.router,
    console_changes.router,
    source_previews.router,
    *INTEGRATION_PAGES,
    console_search.router,
    public_forms.router,
    form_pages.router,
    question_pages.router,
    shared_pages.router,
    console_creation.router,
    console_automations.router,
    console_drafts.router,
    console_run_forms.router,
    console_automation_settings.router,
    console_versions.router,
    console_canary.router,
    console_pause.router,
    console_incoming.router,
    legacy_import_pages.router,
    console_runs.router,
    console_comparison.router,
    console_run_filters.router,
    console_incidents.router,
    console_alert_rules.router,
    console_alert_rule_forms.router,
    console_run_operations.router,
    console_run_actions.router,
    console_from_node.router,
    console_decisions.router,
    *WORKSPACE_PAGES,
    me.router,
    release_notices.router,
    oauth_clients.router,
    workspaces.router,
    workspace_exports.router,
    home_layouts.router,
    workspace_events.router,
    realtime.router,
    notifications.router,
    notification_preferences.router,
    push_devices.router,
    webhook_signing.router,
    webhook_endpoints.router,
    members.router,
    api_keys.router,
    experiments.router,
    actions.router,
    action_runs.router,
    connections.router,
    resources.router,
    outbound_limits.router,
    mounts.router,
    resource_imports.router,
    authorizations.router,
    data_sources.router,
    data_source_runs.router,
    spreadsheet_imports.router,
    source_run_pages.router,
    items.router,
    search.router,
    system.router,
    database_copies.router,
    database_templates.router,
    databases.router,
    fields.router,
    views.router,
    files.router,
    share_links.router,
    record_templates.router,
    records.router,
    record_comments.router,
    time_entries.router,
    exports.router,
    surfaces.router,
    forms.router,
    automations.router,
    canaries.router,
    circuit_breakers.router,
    schedules.router,
    automation_runs.router,
    incidents.router,
    alert_rules.router,
    run_statistics.router,
    run_comparisons.router,
    run_filters.router,
    run_operations.router,
    run_pages.router,
    waits.router,
    webhooks.router,
    secrets.router,
    legacy_imports.router,
    starters.router,
    ai_runs.router,
    changes.router,
    model_settings.router,
    pauses.router,
)
