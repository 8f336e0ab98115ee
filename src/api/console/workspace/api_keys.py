"""Pages of API keys, and of the secrets of the workspace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, read_as, redisplays
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.words import named
from api.console.workspace import settings as workspace_settings
from api.kernel.routing import ApiRequest, Cursor
from api.routers.automation import automations as secrets_api
from api.routers.people import members as api
from api.routers.people import workspaces
from api.routers.workspace import ai_runs
from models.automation.secrets import store
from models.automation.secrets.store import PutSecret
from models.core.access.rules import Scope
from models.core.pagination import DEFAULT_LIMIT
from models.people import api_keys
from models.people.api_keys import CreateApiKey
from models.people.users import display_names
from models.workspace import model_settings
from runtime.clock import wire_timestamp
from runtime.errors import ValidationError

router = page_router()

KEYS = f"{workspace_settings.SETTINGS}/api-keys"

LIFETIMES = (
    ("7", "7 days"),
    ("30", "30 days"),
    ("90", "90 days"),
    ("365", "1 year"),
    ("never", "No expiration"),
)
_USUAL = "90"


class KeyState(StrEnum):
    """The keys that a list shows."""

    LIVE = "live"
    ENDED = "ended"


@router.get(KEYS, access=workspace_settings.reads(Scope.API_KEYS_READ))
async def get_api_keys(
    request: ApiRequest,
    cursor: Cursor = None,
    state: KeyState = KeyState.LIVE,
    notice: workspace_settings.Notice | None = None,
) -> Response:
    """Look through the API keys of a workspace."""
    wanted = request.page("pages of api keys", DEFAULT_LIMIT, cursor, state)
    listed = await api_keys.page_of_keys(
        request.work, request.actor, wanted, live=state is KeyState.LIVE
    )
    users = {key.bound_user_id for key in listed.items if key.bound_user_id is not None}
    return await workspace_settings.settings_page(
        request,
        "settings_api_keys.html",
        "api-keys",
        api.list_api_keys,
        api.create_api_key,
        api.revoke_api_key,
        notice=notice,
        keys=listed.items,
        names=await display_names(request.work, users),
        state=state,
        cursor=cursor,
        next=listed.cursor,
        now=request.work.now,
        every=len(Scope),
    )


class Preset(StrEnum):
    """Sets of scopes to begin with."""

    NONE = "none"
    READ = "read"
    RUN = "run"
    ALL = "all"


@router.get(f"{KEYS}/new", access=workspace_settings.reads(Scope.API_KEYS_WRITE))
async def get_new_api_key(request: ApiRequest, preset: Preset = Preset.READ) -> Response:
    """Choose what a new key may do."""
    return await _form(request, BLANK, preset)


async def _form(request: ApiRequest, entered: Entered, preset: Preset = Preset.NONE) -> Response:
    scopes = request.actor.scopes
    return await workspace_settings.settings_page(
        request,
        "settings_new_api_key.html",
        "api-keys",
        api.create_api_key,
        entered=entered,
        areas=areas(),
        held=scopes,
        chosen=preset_scopes(preset, scopes),
        preset=None if entered.refusal else preset,
        presets=PRESETS,
        lifetimes=LIFETIMES,
        usual=_USUAL,
        every=len(Scope),
    )


@router.post(KEYS, access=workspace_settings.changes(Scope.API_KEYS_WRITE))
@redisplays(_form)
async def create_api_key_by_form(request: ApiRequest, body: Fields) -> Response:
    """Create an API key, and show its secret this once."""
    key = read_as(
        CreateApiKey,
        {
            "name": body.texts.get("name", ""),
            "scopes": body.checked("scope"),
            "expiresAt": _expiry(request, body.texts.get("lifetime", "")),
        },
    )
    outcome = await api_keys.create_key(request.work, request.actor, request.services.keys, key)
    return await workspace_settings.settings_page(
        request,
        "settings_api_key.html",
        "api-keys",
        workspaces.get_my_scopes,
        key=outcome.api_key,
        token=outcome.token,
    )


act(
    router,
    f"{KEYS}/{{apiKeyId}}/revoke",
    api.revoke_api_key,
    notice=workspace_settings.Notice.REVOKED,
    then=KEYS,
)


def _expiry(request: ApiRequest, lifetime: str) -> str | None:
    """The end of a key with one of the lifetimes. Raises ValidationError for another one."""
    if lifetime not in dict(LIFETIMES):
        raise ValidationError.at("lifetime", "Choose an option from the list.")
    if lifetime == "never":
        return None
    return wire_timestamp(request.work.now + timedelta(days=int(lifetime)))


PRESETS: Mapping[Preset, str] = {
    Preset.NONE: "None",
    Preset.READ: "Read all",
    Preset.RUN: "Run automations",
    Preset.ALL: "All my scopes",
}

_RUN = frozenset(
    {
        Scope.WORKSPACE_READ,
        Scope.RESOURCES_READ,
        Scope.AUTOMATIONS_READ,
        Scope.ACTIONS_READ,
        Scope.ACTIONS_RUN,
    }
)

_AREAS: Mapping[str, Sequence[str]] = {
    "Workspace": ("workspace", "members", "workspace_changes", "billing"),
    "Content": ("resources", "surfaces", "blocks", "canvas", "files"),
    "Data": ("databases", "records", "views", "time_entries", "data_sources"),
    "Automation": ("automations", "actions", "models", "ai"),
    "Access and delivery": ("api_keys", "integrations", "webhooks"),
}


@dataclass(frozen=True, slots=True)
class Noun:
    """One noun with the scopes about it."""

    label: str
    scopes: Sequence[Scope]


def areas() -> Sequence[tuple[str, Sequence[Noun]]]:
    """Every scope, by the noun it is about, and the area of that."""
    return [
        (
            title,
            [
                Noun(
                    label=named(name),
                    scopes=[scope for scope in Scope if scope.partition(":")[0] == name],
                )
                for name in names
            ],
        )
        for title, names in _AREAS.items()
    ]


def preset_scopes(preset: Preset, own: frozenset[Scope]) -> frozenset[Scope]:
    """The scopes of a set that a person has."""
    match preset:
        case Preset.NONE:
            return frozenset()
        case Preset.READ:
            return frozenset(scope for scope in own if scope.endswith(":read"))
        case Preset.RUN:
            return own & _RUN
        case Preset.ALL:
            return own


SECRETS = f"{workspace_settings.SETTINGS}/secrets"


@router.get(SECRETS, access=workspace_settings.reads(Scope.INTEGRATIONS_READ))
async def get_secrets(
    request: ApiRequest, cursor: Cursor = None, notice: workspace_settings.Notice | None = None
) -> Response:
    """Look through the names of the secrets of a workspace."""
    return await _secrets_page(request, BLANK, cursor, notice)


async def _secrets_page(
    request: ApiRequest,
    entered: Entered,
    cursor: str | None = None,
    notice: workspace_settings.Notice | None = None,
) -> Response:
    wanted = request.page("secrets", DEFAULT_LIMIT, cursor)
    listed = await store.list_secrets(request.work, request.actor, wanted)
    return await workspace_settings.settings_page(
        request,
        "settings_secrets.html",
        "secrets",
        secrets_api.list_secrets,
        (secrets_api.put_secret, {"value": "…"}),
        secrets_api.delete_secret,
        secrets=listed.secrets,
        cursor=cursor,
        next=listed.cursor,
        entered=entered,
        notice=notice,
    )


@router.post(SECRETS, access=workspace_settings.changes(Scope.INTEGRATIONS_WRITE))
@redisplays(_secrets_page)
async def put_secret_by_form(request: ApiRequest, body: Fields) -> Response:
    """Store a secret, or give it another value."""
    name = body.texts.get("name", "")

    wanted = read_as(PutSecret, {"value": body.texts.get("secretValue", "")})
    await store.put_secret(request.work, request.actor, request.services.keys, name, wanted)
    return workspace_settings.led_to(request, "secrets", notice=workspace_settings.Notice.SAVED)


act(
    router,
    f"{SECRETS}/{{secretName}}/delete",
    secrets_api.delete_secret,
    notice=workspace_settings.Notice.REMOVED,
    then=SECRETS,
)


MODEL = f"{workspace_settings.SETTINGS}/model"


@router.get(MODEL, access=workspace_settings.reads(Scope.MODELS_READ))
async def get_model_form(
    request: ApiRequest, notice: workspace_settings.Notice | None = None
) -> Response:
    """Look at the language model of a workspace."""
    return await _model_page(request, BLANK, notice=notice)


async def _model_page(
    request: ApiRequest, entered: Entered, notice: workspace_settings.Notice | None = None
) -> Response:
    return await workspace_settings.settings_page(
        request,
        "settings_model.html",
        "model",
        ai_runs.get_model_settings,
        ai_runs.put_model_settings,
        notice=notice,
        entered=entered,
        model=await model_settings.get_settings(request.work, request.actor.workspace_id),
        seconds=model_settings.DEFAULT_SECONDS,
        most_seconds=model_settings.MAX_SECONDS,
    )


@router.post(MODEL, access=workspace_settings.changes(Scope.MODELS_WRITE))
@redisplays(_model_page)
async def put_model_by_form(request: ApiRequest, body: Fields) -> Response:
    """Set the language model of a workspace."""
    settings = read_as(model_settings.PutModelSettings, _model_values(body.texts))
    keys = request.services.keys
    await model_settings.put_settings(request.work, request.actor, keys, settings)
    return workspace_settings.led_to(request, "model", notice=workspace_settings.Notice.SAVED)


def _model_values(texts: dict[str, str]) -> dict[str, object]:
    """The body that the form stands for: a key that is left empty stays as it is."""
    seconds = texts.get("timeoutSeconds", "")
    values: dict[str, object] = {
        "baseUrl": texts.get("baseUrl", ""),
        "model": texts.get("model", ""),
        "enabled": "enabled" in texts,
        "timeoutSeconds": int(seconds) if seconds.isdecimal() and len(seconds) < 9 else seconds,
    }
    if "removeKey" in texts:
        values["apiKey"] = None
    elif "secretKey" in texts:
        values["apiKey"] = texts["secretKey"]
    return values
