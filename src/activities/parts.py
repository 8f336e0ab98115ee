"""The parts that the activities of one process share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from temporalio.client import Client

from activities.automation_runs.nodes import effects
from activities.automation_runs.nodes.invocation import Effect, Transaction
from activities.automation_runs.runs import GraphCache, RunCache
from activities.connections import TokenEndpoints, Tokens
from activities.deliveries.push import Pusher
from activities.language_model.asking import LanguageModel
from activities.outbox.relay import RunStarts
from activities.providers.adapters import ProviderResources, Providers, adapters_of
from activities.sources.fetchers import Fetchers
from models.automation.automations.rules.graph.kinds import NodeKind
from models.messages.push_devices import PushProvider
from runtime.configuration.sections import ProviderSettings
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.mail import MailClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """The times things are kept: after their deletion, their call or their end."""

    trash: timedelta
    request_logs: timedelta
    runs: timedelta
    inbox: timedelta = timedelta(days=7)
    jobs: timedelta = timedelta(days=30)

    @classmethod
    def of(cls, settings: Settings) -> "Periods":
        """The periods the operator chose."""
        return cls(
            trash=timedelta(days=settings.trash_days),
            request_logs=timedelta(days=settings.request_log_days),
            runs=timedelta(days=settings.run_days),
            inbox=timedelta(days=settings.inbox_days),
        )


@dataclass(frozen=True)
class Parts:
    """The parts of one process, and what its activities make of them to share it."""

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
    counted_attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The attributes of runs that metrics count, by key and value."""
    public_url: str | None = None
    """The URL by which people reach the console."""

    @cached_property
    def runs(self) -> RunCache:
        """The runs that are kept in memory between their activities."""
        return RunCache(self.database, GraphCache(), self.keys)

    @cached_property
    def writes(self) -> Mapping[str, Transaction]:
        """The nodes that write to our own tables; a kind of such nodes adds its line."""
        return {
            **effects.RecordNodes(self.keys).transactions(),
            NodeKind.NOTIFY: effects.notify_members,
        }

    @cached_property
    def effects(self) -> Mapping[str, Effect]:
        """The nodes whose effect leaves the machine, which they keep secrets from their run."""
        return effects.Secrecy(self.database, self.keys).around(self.calls)

    @cached_property
    def calls(self) -> Mapping[str, Effect]:
        """The same without their guard, as each is written."""
        return effects.effects_by_kind(
            self.database, self.keys, self.outbound, self.mail, self.store
        )

    @cached_property
    def token_endpoints(self) -> TokenEndpoints:
        """The endpoints of providers that give tokens."""
        return TokenEndpoints(self.outbound, self.keys, self.providers)

    @cached_property
    def provider_calls(self) -> Providers:
        """The providers, as they are called."""
        tokens = Tokens(self.database, self.token_endpoints)
        adapters = adapters_of(self.outbound, tokens, self.providers)
        return Providers(self.database, self.keys, adapters)

    @cached_property
    def fetchers(self) -> Fetchers:
        """The fetchers of every kind of source."""
        resources = ProviderResources(self.database, self.provider_calls)
        return Fetchers(self.outbound, self.keys, self.store, resources)

    @cached_property
    def language_model(self) -> LanguageModel:
        """The language model that a workspace has chosen."""
        return LanguageModel(self.outbound)
