"""A new connection: the fields that its provider needs, and signing in at the provider."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from urllib.parse import parse_qsl, urlsplit

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, Form, given, read_as, redisplays
from api.console.forms import paged
from api.console.integrations.resources import outcome_of
from api.console.rendering import console_page, see_other
from api.console.routing import page_router, refuse
from api.console.words import named
from api.kernel.routing import Access, ApiRequest, Router
from api.pages.assets import shell as page_of_script
from api.routers.sources import connections
from api.routers.sources.connections import CONNECTIONS, INTEGRATIONS, WRITE
from models.core.access.rules import Scope
from models.core.base import JsonObject
from models.messages.jobs.store import own_job
from models.sources.authorizations import store as authorization_commands
from models.sources.authorizations.rules import CALLBACK, oauth_client
from models.sources.connections import providers
from models.sources.connections.store import create_connection
from runtime.errors import ConflictError, PlatformError, UnauthorizedError, UnsupportedError
from runtime.ids import parse_id
from runtime.temporal.workflow_kinds import WorkflowKind


def _refuse_return(request: ApiRequest, refusal: PlatformError) -> Response:
    """The page that takes a key, for who comes back without a session; else as all pages."""
    return (
        page_of_script("authorized")
        if type(refusal) is UnauthorizedError
        else refuse(request, refusal)
    )


router = page_router()
returning = Router(tags=["console"], refuse=_refuse_return)

_ALL = CONNECTIONS.removeprefix("/v1")
_FORM = paged(Access(scopes=[Scope.INTEGRATIONS_WRITE]))

_OAUTH = connections.OAUTH.removeprefix("/v1")


class NewConnection(Form):
    """The provider that a connection is to lead to."""

    provider: providers.ProviderName


class SignIn(Form):
    """The connection that signing in at a provider is to make, or is to authorize anew."""

    provider: providers.ProviderName | None = None
    connection_id: str | None = None
    label: str | None = None
    audience: str | None = None


class Returned(Form):
    """The answer with which a provider sent someone back."""

    state: str
    code: str | None = None


@router.get(f"{INTEGRATIONS.removeprefix('/v1')}/new", access=_FORM)
async def get_new_connection(request: ApiRequest, provider: providers.ProviderName) -> Response:
    """Fill in what a provider needs."""
    return await _form(request, BLANK, provider)


def _provider(texts: Mapping[str, str]) -> providers.ProviderName:
    return read_as(NewConnection, {"provider": texts.get("provider")}).provider


async def _form(
    request: ApiRequest, entered: Entered, name: providers.ProviderName | None = None
) -> Response:
    name = name or _provider(entered.texts)
    provider = providers.PROVIDERS[name]
    body = {
        "provider": name,
        "label": provider.label,
        "config": config_example(name),
        "credentials": dict.fromkeys(provider.credentials, "…"),
        "shared": False,
    }
    return await console_page(
        request,
        "connection_form.html",
        (connections.create_connection, body),
        provider=provider,
        name=name.value,
        fields=config_fields(name),
        secrets=[(SECRET + key, f"credentials.{key}", words(key)) for key in provider.credentials],
        told=[
            "label",
            "shared",
            *(PREFIX + one.key for one in config_fields(name)),
            *(f"credentials.{key}" for key in provider.credentials),
        ],
        entered=entered,
        signs_in=signs_in(request, name),
    )


@router.post(_ALL, access=paged(WRITE), errors=[ConflictError])
@redisplays(_form)
async def create_by_form(request: ApiRequest, body: Fields) -> Response:
    """Create a connection, and lead to it; what is wrong is told beside its field."""
    texts = body.texts
    provider = _provider(texts)
    fields: dict[str, object] = {
        "provider": provider,
        "label": texts.get("label", ""),
        "config": config_of(provider, texts),
        "credentials": credentials_of(texts),
        "shared": "shared" in texts,
    }

    content = read_as(providers.CreateConnection, fields)
    outcome = await create_connection(request.work, request.actor, request.services.keys, content)
    return see_other(f"{_path(request)}/connections/{outcome.id}")


@router.post(f"{_OAUTH}/start", access=paged(connections.WRITE), errors=[UnsupportedError])
async def start_by_form(request: ApiRequest, body: SignIn) -> Response:
    """Show the way to a provider, where a person signs in and agrees."""
    content = read_as(authorization_commands.StartAuthorization, given(_start(body)))
    services = request.services
    platform = authorization_commands.Registered(
        services.settings.providers, services.settings.public_url
    )
    started = await authorization_commands.start_authorization(
        request.work, request.actor, services.keys, platform, content
    )
    host = urlsplit(started.authorization_url).hostname
    return await console_page(request, "provider_sign_in.html", started=started, host=host)


def _start(body: SignIn) -> dict[str, object]:
    if body.connection_id is not None:
        return {"connectionId": body.connection_id}
    return {"provider": body.provider, "label": body.label, "shared": body.audience is not None}


# Providers add parameters of their own.
@returning.get(CALLBACK, access=Access(credential="browser", page=True, raw=True), documented=False)
async def get_returned(request: ApiRequest) -> Response:
    """Show whoever comes back from a provider the button that finishes."""
    query = dict(parse_qsl(request.url.query))
    state, code = query.get("state", ""), query.get("code")
    return await console_page(
        request,
        "returned.html",
        workspace_id=parse_id(state.partition(".")[0]),
        state=state,
        code=code,
    )


@router.post(f"{_OAUTH}/callback", access=paged(connections.WRITE))
async def finish_by_form(request: ApiRequest, body: Returned) -> Response:
    """Have the code of a provider exchanged, and lead to where the outcome will stand."""
    content = read_as(
        authorization_commands.FinishAuthorization, given({"state": body.state, "code": body.code})
    )
    keys, job_id = request.services.keys, request.new_id
    await authorization_commands.accept_return(request.work, request.actor, keys, job_id, content)
    return see_other(f"{_path(request)}/exchanges/{job_id}")


@router.get(
    f"{INTEGRATIONS.removeprefix('/v1')}/exchanges/{{exchangeId}}",
    access=paged(Access(scopes=[Scope.INTEGRATIONS_READ])),
)
async def get_exchange(request: ApiRequest) -> Response:
    """Wait for the connection that a sign-in at a provider makes."""
    work, actor, job_id = request.work, request.actor, request.ids["exchangeId"]
    await own_job(work, actor, WorkflowKind.OAUTH_EXCHANGE, job_id)
    outcome = await outcome_of(
        authorization_commands.exchange_outcome(work, actor, job_id, last=False)
    )
    if outcome.value is not None and request.headers.get("hx-request") is None:
        return see_other(f"{_path(request)}/connections/{outcome.value.id}")
    return await console_page(request, "exchange.html", outcome=outcome)


def signs_in(request: ApiRequest, provider: providers.ProviderName) -> bool:
    """True when people can sign in at a provider: an operator registered the platform there."""
    settings = request.services.settings
    return settings.public_url is not None and bool(oauth_client(provider, settings.providers))


def _path(request: ApiRequest) -> str:
    return f"/workspaces/{request.workspace_id}/integrations"


PREFIX = "config."
SECRET = "secret."  # noqa: S105  # how the names of fields begin whose text is not shown again
_WORD = re.compile(r"[A-Z]?[a-z]+")
_CAPITALS = frozenset({"id", "ssh", "ssl", "tls", "url"})
_LINES = 3


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One key of a config as a person fills it in: a choice, some lines, a number or a text."""

    key: str
    label: str
    default: str
    options: Sequence[tuple[str, str]] = ()
    rows: int = 0
    type: str = "text"
    attributes: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the field, which is also where a fault of it is told."""
        return PREFIX + self.key


@cache
def config_fields(provider: providers.ProviderName) -> Sequence[ConfigField]:
    """The fields for the config of a connection to a provider."""
    schema = providers.PROVIDERS[provider].config.model_json_schema(by_alias=True)
    example = config_example(provider)
    needed = schema.get("required", [])
    return [
        _field(key, _present(part), key in needed, example.get(key))
        for key, part in schema.get("properties", {}).items()
        if key not in providers.PROVIDERS[provider].unlisted
    ]


def filled_config_fields(connection: providers.ConnectionDetail) -> Sequence[ConfigField]:
    """The fields for the config of a connection, as it is stored."""
    return [
        replace(one, default=_text(connection.config[one.key]))
        if one.key in connection.config
        else one
        for one in config_fields(connection.provider)
    ]


@cache
def config_example(provider: providers.ProviderName) -> JsonObject:
    """A config of a connection to a provider, as its documentation shows it."""
    schema = providers.PROVIDERS[provider].config.model_json_schema(by_alias=True)
    example: JsonObject = next(iter(schema.get("examples", [])), {})
    return {
        key: one
        for key, one in example.items()
        if key not in providers.PROVIDERS[provider].unlisted
    }


def config_of(provider: providers.ProviderName, texts: Mapping[str, str]) -> JsonObject:
    """The config that the fields of a form stand for; an unknown field stays, to be refused."""
    known = {one.name: one for one in config_fields(provider)}
    return {
        name.removeprefix(PREFIX): _value(known.get(name), text)
        for name, text in texts.items()
        if name.startswith(PREFIX)
    }


def credentials_of(texts: Mapping[str, str]) -> dict[str, str]:
    """The credentials that were typed into a form, by their names."""
    return {
        name.removeprefix(SECRET): text for name, text in texts.items() if name.startswith(SECRET)
    }


def words(key: str) -> str:
    """A key as people read it: `baseUrl` → `Base URL`."""
    parts = [part.lower() for part in _WORD.findall(key)]
    shown = [part.upper() if part in _CAPITALS else part for part in parts]
    return " ".join([shown[0][:1].upper() + shown[0][1:], *shown[1:]]) if shown else key


def _present(part: JsonObject) -> JsonObject:
    """The schema of a value that is there, of one that may be absent."""
    choices = [one for one in part.get("anyOf", []) if one.get("type") != "null"]
    return {**part, **choices[0]} if choices else part


def _field(key: str, part: JsonObject, needed: bool, example: object) -> ConfigField:
    default = part.get("default")
    text = "" if default is None else str(default)
    options = [(one, named(one)) for one in part.get("enum", [])]
    if options or part.get("type") == "array":
        return ConfigField(key, words(key), text, options, rows=0 if options else _LINES)
    attributes: dict[str, object] = {"autocomplete": "off", "spellcheck": "false"}
    attributes |= {"required": True} if needed else {}
    attributes |= {} if example is None else {"placeholder": example}
    if part.get("type") == "integer":
        attributes |= {"min": part.get("minimum"), "max": part.get("maximum")}
        return ConfigField(key, words(key), text, type="number", attributes=attributes)
    return ConfigField(key, words(key), text, attributes=attributes)


def _text(value: object) -> str:
    """A value of a config as its field shows it."""
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _value(kind: ConfigField | None, text: str) -> object:
    if kind is not None and kind.rows:
        return [line for line in text.split("\n") if line]
    if kind is not None and kind.type == "number" and re.fullmatch(r"-?[0-9]{1,9}", text):
        return int(text)
    return text
