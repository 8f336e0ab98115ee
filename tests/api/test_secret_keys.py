"""The change from one secret key to the next, and processes whose key is not the database's."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
import pytest_asyncio
from sqlalchemy import LargeBinary, Text, cast, func, select, update

import models.tables  # noqa: F401  # every table
from api.app import create_app
from api.kernel.services import Services, secret_keys
from cli.supervisor.development import DevelopmentIssuer
from models.automation.secrets.rules import secret_place
from models.automation.secrets.store import workspace_secret
from models.core.secret_keys import (
    WrongSecretKeyError,
    check_keys,
    forget_lost_keys,
    known_keys,
    outdated_values,
    promote_key,
    register_keys,
    require_keys,
    rotate_values,
)
from models.people.api_keys import api_key
from models.people.credentials import outdated_keys
from models.sources.authorizations.store import disconnect
from models.sources.connections.store import store_credentials
from models.workspace.share_links.links import outdated_links
from runtime.configuration.settings import Settings
from runtime.crypto import KEY_ID_BYTES, KeyRing, sealed_columns
from runtime.database import Database
from runtime.postgresql.schema import metadata
from tests.contract.furnished import Furnished, furnish
from tests.support.client import Client, Contract
from tests.support.hooks import make_hook, send
from tests.support.items import read
from tests.support.postgres import migrated_database
from tests.support.spaces import make_space

OLD, NEW, OTHER = (f"{name} secret key that is long enough" for name in ("one", "two", "three"))
BEFORE, DURING, AFTER = KeyRing([OLD]), KeyRing([NEW, OLD]), KeyRing([NEW])

NOT_SEALED = {
    "api_key.digest": "of a token that only its holder knows; its next use moves it",
    "api_key.digest_key": "names a key",
    "share_link.digest": "of a token that only its holder knows; its next use moves it",
    "share_link.digest_key": "names a key",
    "secret_key.id": "names a key",
    "form_quota.address": "of an address, until its limit is full: minutes",
    "invitation.digest": "of a token that lasts a week, and ends with the older key",
    "oauth_authorization.state_digest": "of a state that lasts ten minutes",
    "push_device.token_digest": "is made anew with the sealed token",
    **dict.fromkeys(
        (
            "browser_session.digest",
            "experiment_unit.unit",
            "file.sha256",
            "idempotency_reply.fingerprint",
            "idempotency_reply.request_hash",
            "incident.fingerprint",
            "realtime_ticket.digest",
            "resource_mirror.digest",
            "sign_in_link.digest",
            "source_row.digest",
            "source_row.identity",
            "staged_row.digest",
            "staged_row.identity",
            "time_entry.mutation_digest",
            "webhook_receipt.key_hash",
        ),
        "a hash without a key",
    ),
}
"""Columns of bytes that a rotation passes by, and why."""


@pytest.fixture
def url() -> Iterator[str]:
    """A database of its own, which no process has written to yet."""
    with migrated_database(f"keys_{uuid4().hex[:6]}") as url:
        yield url


@pytest_asyncio.fixture
async def store(url: str) -> AsyncIterator[Database]:
    database = Database(url)
    yield database
    await database.close()


@dataclass
class Platform:
    """One database, and processes with keys that change."""

    settings: Settings
    contract: Contract
    database: Database

    @asynccontextmanager
    async def api(self, keys: KeyRing, token: str) -> AsyncIterator[tuple[Services, Client]]:
        """A process of the API that has had time to record its key, and a caller."""
        app = create_app(self.settings, database=self.database, background=())
        services: Services = app.state.services
        services.keys = keys
        async with app.router.lifespan_context(app), secret_keys(services):
            await asyncio.gather(*_registering())
            async with Client(app, self.contract, token) as client:
                yield services, client


@pytest.fixture
def platform(settings: Settings, contract: Contract, store: Database) -> Platform:
    return Platform(settings, contract, store)


def _registering() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == "secret-keys"]


async def register(database: Database, *secrets: str) -> None:
    async with database.transaction() as work:
        await register_keys(work, KeyRing(secrets))


async def readiness(client: Client) -> tuple[int, str]:
    answer = await client.get("/readyz")
    return answer.status_code, answer.text


async def plaintexts(database: Database, keys: KeyRing) -> dict[tuple[str, ...], bytes]:
    """Every sealed value, opened, by column and row."""
    opened = {}
    for column in sealed_columns(metadata):
        table = column.column.table
        statement = select(table, column.value.label("sealed_value_")).where(
            column.value.is_not(None)
        )
        async with database.transaction() as work:
            for row in await work.rows(statement):
                names = (column.name, *(str(row._mapping[one.name]) for one in column.key))
                opened[names] = keys.unseal(bytes(row.sealed_value_), column.seal.place(row))
    return opened


async def traces(database: Database, key_id: bytes) -> set[str]:
    """The columns in which a value begins with the id of a key, plainly or in base64."""
    found = set()
    # The first 30 bits of the id, as far as letters of base64 tell them apart.
    start = base64.b64encode(key_id).decode()[: KEY_ID_BYTES * 8 // 6]
    async with database.transaction() as work:
        for table in metadata.sorted_tables:
            for column in table.columns:
                if isinstance(column.type, LargeBinary) or "BYTEA" in str(column.type).upper():
                    has = func.substr(column, 1, KEY_ID_BYTES) == key_id
                elif "JSON" in str(column.type).upper():
                    has = cast(column, Text).like(f'%"{start}%')
                else:
                    continue
                if await work.scalar(select(func.count()).select_from(table).where(has)):
                    found.add(f"{table.name}.{column.name}")
    return found


NOTE, ONCE = {"kind": "note", "title": "Once"}, {"Idempotency-Key": "once"}


async def furnish_secrets(made: Furnished, issuer: DevelopmentIssuer) -> dict[str, Any]:
    """What is sealed and is not there yet, and a share link."""
    client, space = made.client, made.space
    hook = await make_hook(client, space)
    await made.post(f"{space.path}/automations/{made.ids['automationId']}/rotate-webhook-secret")
    endpoint = f"{space.path}/webhook-endpoints/{made.ids['endpointId']}"
    await made.post(f"{endpoint}/rotate-secret")
    read(await client.get(f"{space.path}/webhook-signing-secret"))
    model = {"baseUrl": "https://llm.example.com/v1", "model": "m", "apiKey": "sk-123"}
    read(await client.put(f"{space.path}/ai/model-settings", json=model))
    config = {"url": "https://example.test/", "headers": {"Authorization": "Bearer canary"}}
    source = {
        "kind": "data_source",
        "title": "R",
        "config": {"kind": "http_json", "config": config},
    }
    operations = [{"kind": "create_item", "input": source}]
    await made.post(f"{space.path}/changes", {"operations": operations})
    page = {"workspaceId": str(space.id), "kind": "page", "title": "Proposed"}
    proposed = await made.client.post("/v1/items", json=page, headers={"Prefer": "propose"})
    assert proposed.status_code == 202, proposed.text
    person = client.with_token(issuer.mint(space.email, "Test"))
    device = {"installationId": uuid4().hex, "platform": "android", "token": f"of-{uuid4().hex}"}
    read(await person.post("/v1/me/push-devices", json=device))
    body = {"provider": "github", "label": "Repositories", "credentials": {"token": "ghp_x"}}
    connected = await made.post(f"{space.path}/integrations/connections", body)
    async with space.database.transaction() as work:
        await store_credentials(
            work, space.keys, space.id, UUID(connected["id"]), {"accessToken": "gho_x"}
        )
        await disconnect(work, space.actor, space.keys, UUID(connected["id"]))
    links = f"{space.path}/items/{made.ids['folderId']}/share-links"
    link = await made.post(links, {"allowDownload": False})
    unused = await made.post(links, {"allowDownload": False})
    note = await made.post("/v1/items", NOTE, headers=ONCE)
    return {"hook": hook, "device": device, "link": link, "unused": unused, "note": note}


@pytest.mark.long
async def test_everything_written_under_an_old_key_is_there_without_it(
    platform: Platform, store: Database, issuer: DevelopmentIssuer
) -> None:
    space = await make_space(store, BEFORE)
    async with platform.api(BEFORE, space.token) as (services, client):
        made = await furnish(space, client)
        more = await furnish_secrets(made, issuer)
    before = await plaintexts(store, BEFORE)
    assert {kind for kind, *_ in before} == {one.name for one in sealed_columns(metadata)}

    async with platform.api(DURING, space.token) as (services, client):
        assert await readiness(client) == (200, '{"data":{"status":"ready"}}')
        left = await outdated_values(store, DURING)
        assert {one.kind for one in left} == {kind for kind, *_ in before}
        assert {one.key_id for one in left} == {BEFORE.current_id}
        assert sum(one.count for one in left) == len(before)
        await rotate_values(store, DURING)
        assert await outdated_values(store, DURING) == []
        await use(services, client, more)

    assert await traces(store, BEFORE.current_id) == {
        "api_key.digest_key",
        "share_link.digest_key",
        "secret_key.id",
    }
    async with platform.api(AFTER, space.token) as (services, client):
        assert (await readiness(client))[0] == 200
        await use(services, client, more)
        assert await plaintexts(store, AFTER) == before
        person = client.with_token(issuer.mint(space.email, "Test"))
        read(await person.post("/v1/me/push-devices", json=more["device"]))
        assert len(read(await person.get("/v1/me/push-devices"))["devices"]) == 1
    async with store.transaction() as work:
        assert [*await known_keys(work)] == [AFTER.current_id]


async def use(services: Services, client: Client, more: dict[str, Any]) -> None:
    """Use a key, a link and a webhook."""
    assert (await client.get(f"/v1/workspaces/{more['link']['workspaceId']}")).status_code == 200
    assert (await send(client.with_token(None), more["hook"])).status_code == 202
    link = more["link"]
    opened = await client.with_token(None).get(
        link["url"], headers={"X-Share-Token": link["token"]}
    )
    assert opened.status_code == 200, opened.text
    assert read(await client.post("/v1/items", json=NOTE, headers=ONCE), 201) == more["note"]
    await services.request_log.flush()


def test_every_column_of_bytes_is_rotated_or_says_why_not() -> None:
    sealed = {one.name for one in sealed_columns(metadata) if one.seal.member is None}
    columns = {
        f"{table.name}.{column.name}"
        for table in metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, LargeBinary) or "BYTEA" in str(column.type).upper()
    }
    assert columns == sealed | NOT_SEALED.keys()
    assert not sealed & NOT_SEALED.keys()


@pytest.mark.long
async def test_a_key_moves_with_its_next_use_and_an_unused_one_is_listed(
    platform: Platform, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, idle = await make_space(store, BEFORE), await make_space(store, BEFORE)
    async with platform.api(BEFORE, used.token) as (services, client):
        read(await client.get(used.path))
    async with platform.api(DURING, used.token) as (services, client):
        for _ in range(3):
            read(await client.get(used.path))
        await services.request_log.flush()
        async with store.transaction() as work:
            (listed,) = await outdated_keys(work, DURING.current_id, 10)
        assert (listed.workspace_id, listed.name) == (idle.id, "owner")
        assert idle.token.startswith(listed.prefix)
        # Once it has moved, nothing is written.
        monkeypatch.setattr(services.request_log, "move_digest", fail)
        read(await client.get(used.path))
    async with platform.api(AFTER, used.token) as (services, client):
        read(await client.get(used.path))
        assert (await client.with_token(idle.token).get(idle.path)).status_code == 401


def fail(*_: object) -> None:
    pytest.fail("the digest was moved again")


@pytest.mark.long
async def test_a_process_with_the_old_key_first_takes_no_digest_back(
    platform: Platform, store: Database
) -> None:
    space, prepared = await make_space(store, BEFORE), KeyRing([OLD, NEW])
    await register(store, OLD)
    for keys in (prepared, DURING, prepared, DURING, prepared):
        async with platform.api(keys, space.token) as (services, client):
            read(await client.get(space.path))
            assert (await readiness(client))[0] == 200
            await services.request_log.flush()
    async with store.transaction() as work:
        assert await work.scalar(select(api_key.c.digest_key)) == NEW_ID


NEW_ID, OLD_ID = AFTER.current_id, BEFORE.current_id


@pytest.mark.parametrize(
    ("known", "configured", "problem"),
    [
        ([], [OLD], None),
        ([OLD], [OLD], None),
        ([OLD], [NEW, OLD], None),
        ([OLD], [OLD, NEW], None),
        ([OLD, NEW], [NEW, OLD], None),
        ([OLD], [NEW], "does not match this database"),
        ([OLD], [OTHER, NEW], "does not match this database"),
        ([OLD, NEW], [OTHER], "does not match this database"),
        ([OLD, NEW], [NEW], "lacks a key of this database"),
        ([OLD, NEW], [OLD], "lacks a key of this database"),
        ([OLD, NEW], [OTHER, OLD], "lacks a key of this database"),
    ],
)
def test_keys_are_compared(known: list[str], configured: list[str], problem: str | None) -> None:
    ids = [KeyRing([one]).current_id for one in known]
    if problem is None:
        check_keys(ids, KeyRing(configured).ids)
        return
    with pytest.raises(WrongSecretKeyError, match=problem) as raised:
        check_keys(ids, KeyRing(configured).ids)
    assert "NEW,OLD" in raised.value.message or "rotate-secret" in raised.value.message
    assert not any(secret in raised.value.message for secret in (OLD, NEW, OTHER))


@pytest.mark.parametrize("secret", [NEW, OTHER])
async def test_a_wrong_key_is_reported_and_no_key_is_called_invalid(
    platform: Platform, store: Database, secret: str
) -> None:
    space = await make_space(store, BEFORE)
    await register(store, OLD)
    async with platform.api(KeyRing([secret]), space.token) as (_, client):
        status, said = await readiness(client)
        assert status == 503
        assert "WORKSPACE_SECRET_KEY does not match this database" in said
        assert (await client.get(space.path)).status_code == 503
        # What needs no key is answered.
        assert (await client.get("/healthz")).status_code == 200
    with pytest.raises(WrongSecretKeyError):
        await register(store, secret)
    async with store.transaction() as work:
        assert [*await known_keys(work)] == [OLD_ID]


async def test_a_process_that_runs_with_the_old_key_learns_of_the_new_one(
    platform: Platform, store: Database
) -> None:
    space = await make_space(store, BEFORE)
    async with platform.api(BEFORE, space.token) as (_, client):
        assert (await readiness(client))[0] == 200
        await register(store, NEW, OLD)
        status, said = await readiness(client)
        assert status == 503
        assert "lacks a key of this database" in said
        assert NEW_ID.hex() not in said
        with pytest.raises(WrongSecretKeyError) as raised:
            await register(store, OLD)
    assert NEW_ID.hex() in raised.value.keys


async def test_an_old_key_is_needed_until_nothing_is_left_under_it(store: Database) -> None:
    space = await make_space(store, BEFORE)
    await register(store, OLD)
    async with store.transaction() as work:
        await work.execute(text_secret(space.id))
    await register(store, NEW, OLD)
    with pytest.raises(WrongSecretKeyError, match="rotate-secret"):
        await register(store, NEW)
    await rotate_values(store, DURING)
    await register(store, NEW)
    with pytest.raises(WrongSecretKeyError, match="does not match"):
        await register(store, OLD)


def text_secret(workspace_id: UUID, plain: bytes = b"x") -> Any:
    """The statement that stores a secret under the old key."""
    sealed = BEFORE.seal(plain, secret_place(workspace_id, "A"))
    return workspace_secret.insert().values(
        workspace_id=workspace_id,
        name="A",
        sealed_value=sealed,
        created_at=func.now(),
        updated_at=func.now(),
    )


async def test_the_first_processes_agree_on_one_key(store: Database) -> None:
    secrets = [OLD, NEW, OTHER] * 3
    ends = await asyncio.gather(*(register(store, one) for one in secrets), return_exceptions=True)
    async with store.transaction() as work:
        ((first, row),) = (await known_keys(work)).items()
    assert row.position == 1
    for secret, end in zip(secrets, ends, strict=True):
        if KeyRing([secret]).current_id == first:
            assert end is None
        else:
            assert isinstance(end, WrongSecretKeyError)


async def test_an_upgraded_database_is_known_by_what_it_holds(store: Database) -> None:
    space = await make_space(store, BEFORE)
    async with store.transaction() as work:
        await work.execute(text_secret(space.id))
        await work.execute(update(api_key).values(digest_key=None))
    with pytest.raises(WrongSecretKeyError, match="does not match"):
        await register(store, NEW)
    await register(store, NEW, OLD)
    async with store.transaction() as work:
        assert [*await known_keys(work)] == [NEW_ID, OLD_ID]
        assert await work.scalar(select(api_key.c.digest_key)) == OLD_ID


async def test_a_change_can_be_reverted(store: Database) -> None:
    space = await make_space(store, BEFORE)
    for secrets in ([OLD], [NEW, OLD]):
        await register(store, *secrets)
    async with store.transaction() as work:
        await work.execute(text_secret(space.id))
    await rotate_values(store, DURING)
    back = KeyRing([OLD, NEW])
    async with store.transaction() as work:
        await promote_key(work, back)
    await rotate_values(store, back)
    await register(store, OLD)
    async with store.transaction() as work:
        assert [*await known_keys(work)] == [OLD_ID]
        await require_keys(work, BEFORE)


async def test_a_lost_key_can_be_abandoned(store: Database) -> None:
    space = await make_space(store, BEFORE)
    await register(store, OLD)
    async with store.transaction() as work:
        await work.execute(text_secret(space.id))
        assert await forget_lost_keys(work, AFTER) == {OLD_ID}
    await register(store, NEW)
    await rotate_values(store, AFTER)
    ((lost),) = await outdated_values(store, AFTER)
    assert (lost.kind, lost.key_id, lost.count) == ("workspace_secret.sealed_value", OLD_ID, 1)
    async with store.transaction() as work:
        assert await outdated_links(work, NEW_ID, 10) == []


async def test_a_value_that_changes_meanwhile_stays(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = await make_space(store, BEFORE)
    place = secret_place(space.id, "A")
    async with store.transaction() as work:
        await work.execute(text_secret(space.id))
    seal, newer = KeyRing.seal, DURING.seal(b"newer", place)

    def change_first(keys: KeyRing, plaintext: bytes, where: str) -> bytes:
        with psycopg.connect(str(store.engine.url.set(drivername="postgresql"))) as connection:
            connection.execute("UPDATE workspace_secret SET sealed_value = %s", (newer,))
        return seal(keys, plaintext, where)

    monkeypatch.setattr(KeyRing, "seal", change_first)
    progress: list[tuple[str, int]] = []
    await rotate_values(store, DURING, lambda *one: progress.append(one))
    assert progress == [("workspace_secret.sealed_value", 0)]
    async with store.transaction() as work:
        assert await work.scalar(select(workspace_secret.c.sealed_value)) == newer


async def test_altered_values_are_left_and_counted(store: Database) -> None:
    space = await make_space(store, BEFORE)
    async with store.transaction() as work:
        await work.execute(text_secret(space.id, plain=b"x" * 100))
        altered = workspace_secret.c.sealed_value.op("||")(b"?")
        await work.execute(update(workspace_secret).values(sealed_value=altered))
    await rotate_values(store, DURING)
    ((left),) = await outdated_values(store, DURING)
    assert (left.kind, left.count) == ("workspace_secret.sealed_value", 1)
