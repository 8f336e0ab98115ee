"""Every activity that the workers of a process execute, by its queue."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.client import Client

from activities.action_runs.nodes import ActionNodeActivities
from activities.action_runs.steps import ActionSteps
from activities.action_runs.transactions import ActionRunActivities
from activities.authorizations.token_endpoint import TokenEndpoints
from activities.authorizations.tokens import Tokens
from activities.automation_runs.graphs import GraphCache
from activities.automation_runs.loops import LoopActivities
from activities.automation_runs.nodes.effects import Effects
from activities.automation_runs.nodes.invocation import Effect
from activities.automation_runs.nodes.notify import notify_members
from activities.automation_runs.nodes.records import RecordNodes
from activities.automation_runs.nodes.secrecy import Secrecy
from activities.automation_runs.outside_nodes import OutsideNodes
from activities.automation_runs.runs import RunCache
from activities.automation_runs.transactions import AutomationRunActivities
from activities.automation_runs.waits import WaitActivities
from activities.called_runs import CalledRunActivities
from activities.data_source_runs.steps import DataSourceRunActivities
from activities.deliveries.attempts import DeliveryActivities
from activities.deliveries.channels import Channel
from activities.deliveries.mails import MailChannel
from activities.deliveries.push.messages import Pusher
from activities.deliveries.pushes import PushChannel
from activities.deliveries.webhooks import WebhookChannel
from activities.endings import EndingActivities
from activities.jobs.families import job_families
from activities.jobs.transactions import JobActivities
from activities.language_model.asking import LanguageModel
from activities.legacy_imports.bundles import BundleActivities
from activities.legacy_imports.transactions import LegacyImportTransactions
from activities.legacy_imports.workspaces import WorkspaceActivities
from activities.maintenance.action_runs import ActionRuns
from activities.maintenance.automation_runs import AutomationRuns
from activities.maintenance.data_source_runs import DataSourceRuns
from activities.maintenance.deliveries import Deliveries
from activities.maintenance.families import WorkFamily
from activities.maintenance.jobs import Jobs
from activities.maintenance.legacy_imports import LegacyImports
from activities.maintenance.reconciler import Reconciler
from activities.maintenance.retention import Periods, RetentionActivities
from activities.maintenance.schedules import ScheduleMaintenance
from activities.maintenance.time_entries import TimeEntries
from activities.maintenance.usage import UsageMaintenance
from activities.outbox.run_starts import RunStarts
from activities.providers.adapters import adapters_of
from activities.providers.calls import Providers
from activities.providers.resource_reader import ProviderResources
from activities.schedules.fires import ScheduleFires
from activities.schedules.schedules import Schedules
from activities.sources.fetchers import Fetchers
from activities.time_entries.timers import TimerActivities
from models.automation.automations.rules.graph.kinds import NodeKind
from models.messages.deliveries.rules import DeliveryChannel
from models.messages.push_devices.rules import PushProvider
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.families import Queue
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.mail import MailClient
from runtime.provider_settings import ProviderSettings
from workflows.registry import SCHEDULED


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that the workers of one process share."""

    database: Database
    client: Client
    outbound: OutboundClient
    keys: KeyRing
    store: ObjectStore
    periods: Periods
    running_cap: int
    """Automation runs of one workspace that may be running when another is started."""
    mail: MailClient | None = None
    run_limit: timedelta = timedelta(days=30)
    """A run that lasts longer is timed out."""
    starts: RunStarts = field(default_factory=RunStarts)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    """The operator's settings of providers, by their names."""
    pushers: Mapping[PushProvider, Pusher] = field(default_factory=dict)
    """The carriers of pushes, as far as the operator has keys for them."""


@dataclass(frozen=True, slots=True)
class Registrations:
    """The activities of each queue, and the families of work that they execute."""

    activities: Mapping[Queue, Sequence[Callable[..., Any]]]
    families: Sequence[WorkFamily[Any]]


def registrations_of(parts: Parts) -> Registrations:
    """The registrations of the workers of a process, sharing what they keep in memory."""
    starts, limit = parts.starts, parts.run_limit
    known = RunCache(parts.database, GraphCache(), parts.keys)
    writes = {**RecordNodes(parts.keys).transactions(), NodeKind.NOTIFY: notify_members}
    effects = _effects(parts)
    actions = ActionRunActivities(parts.database, ActionSteps(parts.database, writes, effects))
    outside = OutsideNodes(parts.database, known, effects)
    endpoints = TokenEndpoints(parts.outbound, parts.keys, parts.providers)
    providers = _providers(parts, endpoints)
    fetchers = _fetchers(parts, providers)
    jobs = _jobs(parts, fetchers, providers, endpoints)
    refreshes = DataSourceRunActivities(parts.database, parts.store, fetchers)
    deliveries = DeliveryActivities(parts.database, _channels(parts))
    retention = RetentionActivities(parts.database, parts.store, parts.periods)
    families = families_of(jobs)
    activities: dict[Queue, Sequence[Callable[..., Any]]] = {
        Queue.AUTOMATION: [
            *AutomationRunActivities(parts.database, known, writes, starts, limit).all(),
            *LoopActivities(parts.database, known).all(),
            *WaitActivities(parts.database, known).all(),
            *ActionNodeActivities(parts.database, known).all(),
            *CalledRunActivities(parts.database).all(),
            EndingActivities(parts.database).read_end,
            *actions.all(),
            deliveries.close_cancelled_delivery,
            ScheduleFires(parts.database).accept,
            TimerActivities(parts.database).end_when_due,
            *LegacyImportTransactions(parts.database, parts.keys).all(),
            *_sweeps(parts, families),
        ],
        Queue.IO: [
            *(*outside.all(), actions.step),
            *(refreshes.fetch, jobs.advance_job, deliveries.attempt_delivery),
        ],
        Queue.BULK: [
            *(jobs.advance_job, jobs.undo_job),
            *(refreshes.stage, refreshes.apply, refreshes.close),
            *BundleActivities(parts.database, parts.store).all(),
            WorkspaceActivities(parts.database, parts.store, parts.keys).work_on,
            *(retention.purge, retention.remove_orphans),
        ],
    }
    return Registrations(activities, families)


def _effects(parts: Parts) -> Mapping[str, Effect]:
    effects = Effects(parts.database, parts.keys, parts.outbound, parts.mail).by_kind()
    return Secrecy(parts.database, parts.keys).around(effects)


def _jobs(
    parts: Parts, fetchers: Fetchers, providers: Providers, endpoints: TokenEndpoints
) -> JobActivities:
    model = LanguageModel(parts.outbound)
    chunks = job_families(parts.store, fetchers, providers, endpoints, parts.keys, model)
    return JobActivities(parts.database, chunks)


def _fetchers(parts: Parts, providers: Providers) -> Fetchers:
    resources = ProviderResources(parts.database, providers)
    return Fetchers(parts.outbound, parts.keys, parts.store, resources)


def _providers(parts: Parts, endpoints: TokenEndpoints) -> Providers:
    tokens = Tokens(parts.database, endpoints)
    return Providers(parts.keys, adapters_of(parts.outbound, tokens, parts.providers))


def families_of(jobs: JobActivities) -> Sequence[WorkFamily[Any]]:
    """The families the reconciler looks after; a family of work adds its registration here."""
    return [
        AutomationRuns(),
        ActionRuns(),
        DataSourceRuns(),
        Jobs(jobs),
        LegacyImports(),
        TimeEntries(),
        Deliveries(),
    ]


def _channels(parts: Parts) -> Mapping[DeliveryChannel, Channel[Any]]:
    """The channels by which deliveries leave; a channel adds its registration here."""
    return {
        DeliveryChannel.MAIL: MailChannel(parts.mail),
        DeliveryChannel.WEBHOOK: WebhookChannel(parts.outbound, parts.keys),
        DeliveryChannel.PUSH: PushChannel(parts.keys, parts.pushers),
    }


def _sweeps(parts: Parts, families: Sequence[WorkFamily[Any]]) -> list[Callable[..., Any]]:
    """Sweeps that make rows and Temporal agree again, and keep totals near the present."""
    schedules = Schedules(parts.database, parts.client, SCHEDULED)
    return [
        Reconciler(parts.database, parts.client, families).reconcile,
        ScheduleMaintenance(parts.database, parts.client, schedules).reconcile_schedules,
        UsageMaintenance(parts.database).settle_usage,
    ]
