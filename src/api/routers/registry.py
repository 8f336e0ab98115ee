"""The routers of all operations and pages; a new one adds its line to `ROUTERS`."""

from collections.abc import Sequence

from api.console import files as console_files
from api.console.alert_rules import routes as console_alert_rules
from api.console.automations import catalog as console_automation_catalog
from api.console.automations import drafts as console_automation_drafts
from api.console.automations import routes as console_automations
from api.console.automations import run_forms as console_automation_run_forms
from api.console.automations import settings as console_automation_settings
from api.console.automations import starters as console_automation_starters
from api.console.changes import routes as console_changes
from api.console.databases import routes as console_databases
from api.console.fields import conversions as console_field_conversions
from api.console.fields import routes as console_fields
from api.console.home import routes as console_home
from api.console.impact import routes as console_impact
from api.console.imports import previews as console_import_previews
from api.console.imports import routes as console_imports
from api.console.incidents import routes as console_incidents
from api.console.incoming import routes as console_incoming
from api.console.integrations import connecting as console_connecting
from api.console.integrations import connections as console_connections
from api.console.integrations import resources as console_resources
from api.console.items import routes as console_items
from api.console.public_forms import making as console_public_forms_making
from api.console.public_forms import routes as console_public_forms
from api.console.record_templates import routes as console_record_templates
from api.console.records import routes as console_records
from api.console.runs import actions as console_run_actions
from api.console.runs import listing as console_run_listing
from api.console.runs import operations as console_run_operations
from api.console.runs import routes as console_runs
from api.console.search import routes as console_search
from api.console.shared import routes as console_shared
from api.console.sign_in import routes as console_sign_in
from api.console.sources import routes as console_sources
from api.console.surfaces import routes as console_surfaces
from api.console.trigger_events import routes as console_trigger_events
from api.console.views import routes as console_views
from api.console.workspace import administration as console_administration
from api.console.workspace import api_keys as console_api_keys
from api.console.workspace import logs as console_logs
from api.console.workspace import members as console_members
from api.console.workspace import profile as console_profile
from api.console.workspace import settings as console_settings
from api.console.workspace import webhooks as console_webhooks
from api.kernel.routing import Router
from api.routers import service
from api.routers.automation import (
    actions,
    automation_runs,
    automations,
    incidents,
    many_runs,
    webhooks,
)
from api.routers.content import items, surfaces
from api.routers.data import databases, records, time_entries
from api.routers.messages import notifications, workspace_events
from api.routers.people import members, workspaces
from api.routers.sources import connections, data_sources, mounts, spreadsheet_imports
from api.routers.workspace import ai_runs, impact, legacy_imports, pauses, share_links

ROUTERS: Sequence[Router] = (
    service.router,
    console_files.router,
    console_sign_in.router,
    console_home.router,
    console_items.router,
    console_databases.router,
    console_databases.table_router,
    console_fields.router,
    console_field_conversions.router,
    console_views.router,
    console_record_templates.router,
    console_records.router,
    console_imports.router,
    console_import_previews.router,
    console_sources.router,
    console_run_listing.router,
    console_changes.router,
    console_connections.router,
    console_connecting.router,
    console_connecting.returning,
    console_resources.router,
    console_search.router,
    console_public_forms.router,
    console_public_forms_making.router,
    console_shared.router,
    console_surfaces.router,
    console_surfaces.live_router,
    console_automation_catalog.router,
    console_automation_starters.router,
    console_automation_drafts.router,
    console_automations.router,
    console_automation_run_forms.router,
    console_automation_settings.router,
    console_incoming.router,
    console_runs.router,
    console_incidents.router,
    console_trigger_events.router,
    console_impact.router,
    console_alert_rules.router,
    console_run_operations.router,
    console_run_actions.router,
    console_settings.router,
    console_profile.router,
    console_members.router,
    console_logs.router,
    console_api_keys.router,
    console_webhooks.router,
    console_administration.router,
    workspaces.me_router,
    workspaces.release_notices_router,
    workspaces.oauth_clients_router,
    workspaces.router,
    workspaces.home_layouts_router,
    workspace_events.router,
    workspace_events.realtime_router,
    notifications.router,
    notifications.devices_router,
    workspace_events.endpoints_router,
    members.router,
    members.api_keys_router,
    members.experiments_router,
    actions.router,
    connections.router,
    mounts.router,
    connections.authorizations_router,
    data_sources.router,
    spreadsheet_imports.router,
    data_sources.pages_router,
    items.router,
    items.search_router,
    service.system_router,
    databases.copies_router,
    databases.templates_router,
    databases.router,
    databases.fields_router,
    databases.views_router,
    items.files_router,
    share_links.router,
    records.templates_router,
    records.router,
    records.comments_router,
    time_entries.router,
    records.exports_router,
    surfaces.router,
    databases.forms_router,
    automations.router,
    automation_runs.schedules_router,
    automation_runs.router,
    incidents.router,
    incidents.alert_rules_router,
    webhooks.events_router,
    many_runs.router,
    automation_runs.pages_router,
    webhooks.waits_router,
    webhooks.router,
    automations.secrets_router,
    legacy_imports.router,
    ai_runs.starters_router,
    ai_runs.router,
    ai_runs.changes_router,
    ai_runs.model_settings_router,
    pauses.router,
    impact.router,
)
