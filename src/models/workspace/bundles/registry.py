"""The kinds of rows that bundles have, in the order they are applied, and the tables left out.

The rows of a kind stand behind those they need. A resource with rows of a workspace adds its kinds
here, or its table to `LEFT_OUT`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from models.automation.actions.store import ACTIONS
from models.automation.automations.import_export import AUTOMATIONS, VERSIONS
from models.content.files.commands import FILES
from models.content.grants import GRANTS
from models.content.items.commands import ITEMS
from models.core.bundles import BundleKind, Stage
from models.data.fields.commands import DATABASES, FIELDS
from models.data.forms.commands import FORMS, SUBMISSIONS
from models.data.record_comments import RECORD_COMMENTS
from models.data.record_templates import RECORD_TEMPLATES
from models.data.records.bundle import BLOCKS, LINKS, RECORDS, SURFACE_COMMENTS, SURFACES
from models.data.time_entries.tables import COMPLETED_ENTRIES
from models.data.views.commands import VIEWS
from models.people.home_layouts import HOME_LAYOUTS
from models.people.members import MEMBERS
from models.sources.data_sources.tables import DATA_SOURCES
from models.sources.mounts.queries import MOUNTS

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
    COMPLETED_ENTRIES,
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


_CREDENTIALS = "credentials leave no workspace"
_HISTORY = "what happened stays where it happened"
_TRANSIENT = "is under way, and ends where it began"
_DERIVED = "is rebuilt from what a bundle has"

LEFT_OUT: Mapping[str, str] = {
    "api_key": _CREDENTIALS,
    "connection": _CREDENTIALS,
    "model_settings": _CREDENTIALS,
    "failing_connection": "is about a connection, which stays behind",
    "form_quota": _TRANSIENT,
    "idempotency_reply": _TRANSIENT,
    "imported_resource": "keeps copies in step, by a connection that stays behind",
    "invitation": "its token was sent by the platform that it opens",
    "oauth_authorization": _CREDENTIALS,
    "oauth_client_choice": "is a choice of a person, about all their workspaces",
    "open_tab": _TRANSIENT,
    "realtime_presence": _TRANSIENT,
    "realtime_ticket": _CREDENTIALS,
    "provider_switch": "says which providers this platform may ask",
    "resource_mirror": "what a provider said to one connection, for a while",
    "share_link": "its token opens the item on the platform that made it",
    "webhook_endpoint": "its secret is shared with the receiver, and events must not be sent twice",
    "webhook_signing_secret": _CREDENTIALS,
    "workspace_secret": _CREDENTIALS,
    "alert_firing": _HISTORY,
    "alert_rule": "names people and connections, and would alert them twice",
    "action_run": _HISTORY,
    "action_step": _HISTORY,
    "automation_event": _HISTORY,
    "automation_run": _HISTORY,
    "change_set": "names what is in this workspace by its ids, and waits for a week at most",
    "data_source_run": _HISTORY,
    "data_source_run_rejection": _HISTORY,
    "saved_run_filter": "looks for runs, which stay where they happened",
    "delivery": _HISTORY,
    "delivery_line": _HISTORY,
    "node_run": _HISTORY,
    "node_run_attempt": _HISTORY,
    "notification": _HISTORY,
    "record_change": _HISTORY,
    "request_log": _HISTORY,
    "incident": _HISTORY,
    "incident_record": _HISTORY,
    "inbox_event": _HISTORY,
    "inbox_outcome": _HISTORY,
    "incident_run": _HISTORY,
    "incident_version": _HISTORY,
    "ungrouped_failure": _HISTORY,
    "run_operation": _HISTORY,
    "run_operation_result": _HISTORY,
    "run_undo": _HISTORY,
    "usage_total": _HISTORY,
    "ended_run": _HISTORY,
    "ended_work": _HISTORY,
    "failure_statistic": _HISTORY,
    "run_statistic": _HISTORY,
    "workspace_event": _HISTORY,
    "debounced_change": _TRANSIENT,
    "field_conversion_value": _TRANSIENT,
    "job": _TRANSIENT,
    "outbound_call": _TRANSIENT,
    "outbound_place": "says how this platform calls others, by connections that stay behind",
    "outbox": _TRANSIENT,
    "circuit_breaker": "counts the failures of the runs here, and is set anew where they run",
    "pause": "holds up what is done here; what comes out of a bundle is asked for anew",
    "resting_intent": _TRANSIENT,
    "removed_field": "its values are on their way out, and leave with it",
    "run_wait": _TRANSIENT,
    "suspended_execution": _TRANSIENT,
    "trigger_event": _TRANSIENT,
    "dry_run_change": _TRANSIENT,
    "webhook_receipt": _TRANSIENT,
    "automation_graph": "is part of the versions that use it",
    "automation_subscription": _DERIVED,
    "record_count": _DERIVED,
    "record_index": _DERIVED,
    "source_columns": "a refresh reads the columns anew",
    "source_row": "a refresh finds records again by their key fields",
    "import_id_map": "is about an import, not about the imported rows",
}
"""Table → why its rows stay behind."""
