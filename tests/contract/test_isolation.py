"""The isolation matrix: every operation, every kind of caller, and every id swapped.

Generated from the OpenAPI document. A refusal is the expected one, says the same
about what is elsewhere and what is nowhere, and leaves every table as it was.
"""

import copy
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import insert, literal, select, update

from cli.supervisor.development import DevelopmentIssuer
from models.content.items.joins import item, item_grant
from models.core.access.rules import ROLE_SCOPES, Level, Role, Scope
from models.people.api_keys import api_key, new_token
from models.people.workspaces import workspace as workspace_table
from runtime.crypto import KeyRing
from tests.contract.callers import Callers, caller_of
from tests.contract.catalogue import EXAMPLES
from tests.contract.conftest import Furnishing
from tests.contract.furnished import Furnished
from tests.contract.operations import Operation, call, called, example_body, operations
from tests.contract.watching import checksum
from tests.support.cells import cells
from tests.support.client import Client
from tests.support.spaces import make_space
from tests.support.watched import WatchedDatabase

pytestmark = pytest.mark.takes(seconds=30)

OPERATIONS = [one for one in operations() if one.id in EXAMPLES]
PROTECTED = [one for one in OPERATIONS if one.access["credential"] != "none"]
OF_PLATFORM = [one for one in PROTECTED if one.access["platformAdmin"]]
"""What is in no workspace: it is denied to all but administrators of the platform."""
OF_WORKSPACES = [one for one in PROTECTED if not one.access["platformAdmin"]]
BY_KEY = [one for one in OF_WORKSPACES if one.access["credential"] != "session"]
PLACED = [one for one in OF_WORKSPACES if one.ids]
ON_ITEMS = [one for one in BY_KEY if one.access["resource"] and one.access["itemLevel"]]


@pytest.fixture(autouse=True)
def _short_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream ends by itself, because no client closes it here."""
    monkeypatch.setattr("api.run_events.LIFETIME_SECONDS", 0.5)
    monkeypatch.setattr("api.realtime.feeds.LIFETIME_SECONDS", 0.5)


def grouped(
    values: Iterable[Operation], by: Callable[[Operation], str] = lambda one: one.tag
) -> pytest.MarkDecorator:
    """Parametrize by groups of operations: a group has one test, which names what fails."""
    groups: dict[str, list[Operation]] = {}
    for one in values:
        groups.setdefault(by(one), []).append(one)
    return pytest.mark.parametrize("group", groups.values(), ids=groups.keys())


def test_every_operation_has_an_example() -> None:
    assert {one.id for one in operations()} == EXAMPLES.keys()


Cell = Callable[[Operation], Awaitable[object]]


async def each(group: Iterable[Operation], cell: Cell) -> None:
    """Make the calls of every operation, and name those that fail."""
    with cells() as named:
        for operation in group:
            with named(operation.id):
                await cell(operation)


async def each_refused(made: Furnished, group: Sequence[Operation], cell: Cell) -> None:
    """Make the calls of every operation: they leave every table of the workspace as it was."""
    before = made.checksum or await _checksum(made)
    await each(group, cell)
    made.checksum = await _checksum(made)
    if made.checksum == before:
        return
    for operation in group:
        before = made.checksum
        with suppress(Exception):
            await cell(operation)
        made.checksum = await _checksum(made)
        assert made.checksum == before, f"{operation.id} changes rows"
    pytest.fail("rows were changed, but not by the second call of any operation")


async def _checksum(made: Furnished) -> str:
    return await checksum(made.space.database, made.ids["workspaceId"])


async def refused(
    made: Furnished, client: Client, operation: Operation, status: int, **options: Any
) -> bytes:
    """The body of the refusal."""
    answer = await call(client, operation, made, **options)
    assert answer.status_code == status, answer.text
    return answer.content


# ---- callers without a valid credential


@pytest_asyncio.fixture(scope="module")
async def dead_tokens(
    own: Furnished, keys: KeyRing, _watched_database: WatchedDatabase
) -> list[str | None]:
    """None, malformed, unknown, revoked, expired, and the key of a workspace that is gone."""
    closed = await make_space(_watched_database, keys)
    own.checksum = None
    ends = {await own.space.key(): "revoked_at", await own.space.key(): "expires_at"}
    async with _watched_database.transaction() as work:
        gone = update(workspace_table).where(workspace_table.c.id == closed.id)
        await work.execute(gone.values(deleted_at=work.now))
        for token, column in ends.items():
            this = api_key.c.digest == keys.digest(token.encode())
            moment = {column: work.now - timedelta(seconds=1)}
            await work.execute(update(api_key).where(this).values(moment))
    return [None, "svc_sk_short", new_token(), *ends, closed.token]


@grouped(PROTECTED)
async def test_every_operation_needs_a_valid_credential(
    own: Furnished, group: Sequence[Operation], dead_tokens: list[str | None]
) -> None:
    async def cell(operation: Operation) -> None:
        bodies = {
            await refused(own, own.client.with_token(token), operation, 401)
            for token in dead_tokens
        }
        assert len(bodies) == 1

    await each_refused(own, group, cell)


# ---- callers from elsewhere


@grouped([one for one in BY_KEY if one.ids])
async def test_a_key_of_another_workspace_finds_nothing(
    own: Furnished, elsewhere: Furnished, group: Sequence[Operation]
) -> None:
    stranger = own.client.with_token(elsewhere.space.token)

    async def cell(operation: Operation) -> None:
        there = await refused(own, stranger, operation, 404)
        assert await refused(own, stranger, operation, 404, ids=_nowhere(operation)) == there

    await each_refused(own, group, cell)


def _nowhere(operation: Operation) -> dict[str, str]:
    return {name: str(uuid.uuid4()) for name in operation.ids}


@grouped([one for one in BY_KEY if one.ids])
async def test_a_member_who_was_removed_finds_nothing(
    own: Furnished, callers: Callers, group: Sequence[Operation]
) -> None:
    removed = await callers.removed()
    await each_refused(own, group, lambda one: refused(own, removed, one, 404))


# ---- callers whose credential is not enough


@pytest.mark.parametrize(
    "scope", sorted({scope for one in BY_KEY for scope in one.access["scopes"]})
)
async def test_every_scope_is_needed(own: Furnished, callers: Callers, scope: str) -> None:
    key = await callers.key(one for one in Scope if one != scope)

    async def cell(operation: Operation) -> None:
        assert scope.encode() in await refused(own, key, operation, 403)

    await each_refused(own, [one for one in BY_KEY if scope in one.access["scopes"]], cell)


@grouped([one for one in BY_KEY if one.access.get("anyScope")], by=lambda one: one.id)
async def test_one_of_several_scopes_is_needed(
    own: Furnished, callers: Callers, group: Sequence[Operation]
) -> None:
    (operation,) = group
    key = await callers.key(one for one in Scope if one not in operation.access["anyScope"])
    await each_refused(own, group, lambda one: refused(own, key, one, 403))


@grouped([one for one in BY_KEY if one.access["scopes"] or one.access.get("anyScope")])
async def test_a_key_without_scopes_may_do_nothing(
    own: Furnished, callers: Callers, group: Sequence[Operation]
) -> None:
    key = await callers.key([])
    await each_refused(own, group, lambda one: refused(own, key, one, 403))


def beyond_viewers(operation: Operation) -> bool:
    """Whether a viewer lacks the scope or the level for it."""
    lacking = set(operation.access["scopes"]) - set(ROLE_SCOPES[Role.VIEWER])
    return bool(lacking) or operation.access["itemLevel"] not in {None, "view"}


WITH_SCOPES = [one for one in BY_KEY if one.access["scopes"]]
FOR_VIEWERS = [one for one in WITH_SCOPES if not beyond_viewers(one)]


@grouped([one for one in WITH_SCOPES if beyond_viewers(one)])
async def test_a_viewer_changes_nothing(
    own: Furnished, callers: Callers, group: Sequence[Operation]
) -> None:
    viewer = await callers.member(Role.VIEWER)
    await each_refused(own, group, lambda one: refused(own, viewer, one, 403))


@grouped([one for one in FOR_VIEWERS if EXAMPLES[one.id].private])
async def test_resources_of_another_member_are_not_found_for_a_viewer(
    own: Furnished, callers: Callers, group: Sequence[Operation]
) -> None:
    viewer = await callers.member(Role.VIEWER)
    await each_refused(own, group, lambda one: refused(own, viewer, one, 404))


@grouped([one for one in FOR_VIEWERS if one.reads and not EXAMPLES[one.id].private])
async def test_a_viewer_reads(own: Furnished, callers: Callers, group: Sequence[Operation]) -> None:
    viewer = await callers.member(Role.VIEWER)

    async def cell(operation: Operation) -> None:
        answer = await call(viewer, operation, own)
        assert answer.is_success, answer.text

    own.checksum = None
    await each(group, cell)


@grouped([one for one in PROTECTED if one.access["credential"] == "session"])
async def test_a_key_is_no_session(own: Furnished, group: Sequence[Operation]) -> None:
    await each_refused(own, group, lambda one: refused(own, own.client, one, 403))


@grouped(OF_PLATFORM)
async def test_an_owner_is_no_platform_administrator(
    own: Furnished, group: Sequence[Operation]
) -> None:
    async def cell(operation: Operation) -> None:
        there = await refused(own, own.client, operation, 403)
        assert await refused(own, own.client, operation, 403, ids=_nowhere(operation)) == there

    await each_refused(own, group, cell)


@grouped([one for one in OF_PLATFORM if one.ids])
async def test_a_platform_administrator_gets_not_found_for_unknown_ids(
    own: Furnished, group: Sequence[Operation], issuer: DevelopmentIssuer
) -> None:
    async def cell(operation: Operation) -> None:
        caller = caller_of(own, operation, issuer)
        await refused(own, caller, operation, 404, ids=_nowhere(operation))

    await each_refused(own, group, cell)


# ---- items that are closed to the caller


@grouped([one for one in ON_ITEMS if set(one.access["scopes"]) <= set(ROLE_SCOPES[Role.EDITOR])])
async def test_a_restricted_item_is_not_there(
    restricted: Furnished, outsiders: Callers, group: Sequence[Operation]
) -> None:
    editor = await outsiders.member(Role.EDITOR)

    async def cell(operation: Operation) -> None:
        nowhere = {f"{_camel(operation.access['resource'])}Id": str(uuid.uuid4())}
        there = await refused(restricted, editor, operation, 404)
        assert await refused(restricted, editor, operation, 404, ids=nowhere) == there

    await each_refused(restricted, group, cell)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


@grouped([one for one in ON_ITEMS if one.access["itemLevel"] != "view"])
async def test_a_grant_to_view_changes_nothing(
    restricted: Furnished, outsiders: Callers, group: Sequence[Operation]
) -> None:
    async def grant(user_id: uuid.UUID) -> None:
        roots = select(
            item.c.workspace_id,
            item.c.id,
            literal(user_id),
            literal(Level.VIEW.value),
            item.c.created_at,
            item.c.updated_at,
        ).where(item.c.workspace_id == restricted.space.id, item.c.access_mode == "restricted")
        async with restricted.space.database.transaction() as work:
            await work.execute(insert(item_grant).from_select(list(item_grant.c), roots))

    granted = await outsiders.granted(grant)
    await each_refused(restricted, group, lambda one: refused(restricted, granted, one, 403))


# ---- ids that belong elsewhere


@grouped(PLACED)
async def test_an_id_in_the_path_from_elsewhere_is_an_unknown_one(
    own: Furnished, elsewhere: Furnished, group: Sequence[Operation], issuer: DevelopmentIssuer
) -> None:
    async def cell(operation: Operation) -> None:
        caller = caller_of(own, operation, issuer)
        for name in operation.ids:
            theirs = elsewhere.ids[EXAMPLES[operation.id].ids.get(name, name)]
            unknown = str(uuid.uuid4())
            foreign = await refused(own, caller, operation, 404, ids={name: theirs})
            assert foreign == await refused(own, caller, operation, 404, ids={name: unknown}), name

    await each_refused(own, group, cell)


@grouped([one for one in BY_KEY if EXAMPLES[one.id].body is not None])
async def test_an_id_in_the_body_from_elsewhere_is_an_unknown_one(
    own: Furnished, elsewhere: Furnished, group: Sequence[Operation]
) -> None:
    names = {value: name for name, value in own.ids.items()}

    async def cell(operation: Operation) -> None:
        sent = example_body(operation, own)
        for path, value in _leaves(sent):
            name = names.get(value)
            if name is None or name in EXAMPLES[operation.id].unswapped:
                continue
            foreign = _with(sent, path, elsewhere.ids[name])
            unknown = _with(sent, path, str(uuid.uuid4()))
            answer = await refused(own, own.client, operation, 404, body=foreign)
            assert await refused(own, own.client, operation, 404, body=unknown) == answer, path

    await each_refused(own, group, cell)


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, (*path, key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _leaves(part, (*path, place))
    elif isinstance(value, str):
        yield path, value


def _with(value: Any, path: tuple[Any, ...], leaf: str) -> Any:
    changed = copy.deepcopy(value)
    node = changed
    for part in path[:-1]:
        node = node[part]
    node[path[-1]] = leaf
    return changed


# ---- what no operation takes


WORDS = [
    (one, name)
    for one in OPERATIONS
    for name in one.parameters
    if name not in one.ids and one.access["credential"] != "none"
]


async def test_a_word_in_the_path_that_no_column_holds_names_nothing(
    own: Furnished, issuer: DevelopmentIssuer
) -> None:
    for operation, name in WORDS:
        answer = await call(caller_of(own, operation, issuer), operation, own, ids={name: "%00"})
        assert answer.status_code in {400, 404}, f"{operation.id}: {answer.text}"


async def test_null_is_no_body(own: Furnished, issuer: DevelopmentIssuer) -> None:
    null: dict[str, Any] = {"content": b"null", "headers": {"Content-Type": "application/json"}}
    for operation in PROTECTED:
        if EXAMPLES[operation.id].body is not None:
            caller, path = caller_of(own, operation, issuer), called({}, operation, own)
            answer = await caller.request(operation.method.upper(), path, **null)
            assert answer.status_code == 400, f"{operation.id}: {answer.text}"


# ---- and the caller who may


def removes(operation: Operation) -> bool:
    """Whether the call takes away what further calls would need."""
    return operation.method == "delete" or EXAMPLES[operation.id].ends


SUCCEEDING = [one for one in OPERATIONS if not EXAMPLES[one.id].works]


@grouped([one for one in SUCCEEDING if not removes(one)])
async def test_the_full_caller_succeeds(
    used: Furnished, group: Sequence[Operation], issuer: DevelopmentIssuer
) -> None:
    async def cell(operation: Operation) -> None:
        answer = await call(caller_of(used, operation, issuer), operation, used)
        assert answer.status_code == operation.success, answer.text

    await each(group, cell)


@pytest.mark.long
async def test_the_full_caller_may_take_away(
    furnished: Furnishing, issuer: DevelopmentIssuer
) -> None:
    """One workspace after another: a call that misses what went before is made in the next."""
    made = await furnished()

    async def cell(operation: Operation) -> None:
        nonlocal made
        answer = await call(caller_of(made, operation, issuer), operation, made)
        if answer.status_code != operation.success:
            made = await furnished()
            answer = await call(caller_of(made, operation, issuer), operation, made)
        assert answer.status_code == operation.success, answer.text

    # What stands deeper comes first in the document's reverse order.
    await each([one for one in reversed(SUCCEEDING) if removes(one)], cell)
