"""Uploads as they arrive: judged before they are taken, streamed, bounded, whole or nothing."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI
from sqlalchemy import text

from cli.supervisor.development import DevelopmentIssuer
from models.core.access.rules import Scope
from runtime.configuration.settings import Settings
from tests.support.client import Client
from tests.support.files import END, FORM, chunks, objects, part, request, rows, stored, upload
from tests.support.patience import ENOUGH, eventually
from tests.support.server import Server, serving
from tests.support.spaces import Space

MIB = 1024 * 1024
LIMIT = 100 * MIB


_BUSY = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name = 'workspace-api' AND state <> 'idle'"
)


@pytest_asyncio.fixture(scope="module")
async def server(settings: Settings) -> AsyncIterator[Server]:
    async with serving(settings) as running:
        yield running


async def _form(client: Client, space: Space, *body: bytes, type_: str = FORM) -> httpx2.Response:
    return await upload(client, space, b"".join(body), headers={"Content-Type": type_})


async def test_a_form_with_one_file(client: Client, space: Space) -> None:
    disposition = 'form-data; name="file"; filename="süß %22a%22.txt"'.encode()
    answer = await _form(
        client, space, part(b"\r\n--x\r\n", disposition, b"Content-Type: text/plain"), END
    )
    assert answer.status_code == 201, answer.text
    made = answer.json()["data"]
    assert (made["name"], made["mimeType"]) == ('süß "a".txt', "text/plain")
    assert (await client.get(made["downloadUrl"])).content == b"\r\n--x\r\n"


@pytest.mark.parametrize(
    ("named", "name"),
    [
        (b"filename*=UTF-8''s%C3%BC%C3%9F.txt", "süß.txt"),
        (b"filename=\"=?utf-8?B?w7w=?=\"; filename*=utf-8''%C3%BC", "ü"),
        (b"filename*=ISO-8859-1'de'%FC; filename=u", "ü"),
        (b"filename=\"a.txt\"; filename*=none''%FC", "a.txt"),
        (b"filename*=UTF-8''..%2Fa%00.txt", "a.txt"),
        (b'filename="a\\"b;c.txt"', 'a"b;c.txt'),
        (b'filename="C:\\a\\b.txt"', "b.txt"),
    ],
)
async def test_the_name_of_a_file_as_clients_write_it(
    client: Client, space: Space, named: bytes, name: str
) -> None:
    answer = await _form(client, space, part(b"x", b'form-data; name="file"; ' + named), END)
    assert answer.status_code == 201, answer.text
    assert answer.json()["data"]["name"] == name


async def test_a_form_of_an_ordinary_client(client: Client, space: Space) -> None:
    answer = await client.post(
        f"{space.path}/files", files={"file": ("../a.bin", b"\0" * 300_000, "image/png")}
    )
    made = answer.json()["data"]
    assert (made["name"], made["mimeType"], made["byteSize"]) == ("a.bin", "image/png", 300_000)


@pytest.mark.parametrize("preamble", [b"\r\n", b"This is a form.\r\n", b"\r\n--\r\n" * 500])
@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_a_preamble_of_a_form_is_skipped(
    client: Client, space: Space, preamble: bytes, size: int
) -> None:
    body = preamble + part() + END

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), size):
            yield body[at : at + size]

    answer = await client.post(
        f"{space.path}/files", content=pieces(), headers={"Content-Type": FORM}
    )
    assert answer.status_code == 201, answer.text
    made = answer.json()["data"]
    assert (made["name"], made["byteSize"]) == ("a.txt", len(b"content"))


_FIELD = part(b"1", b'form-data; name="workspaceId"')


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(END, id="no part"),
        pytest.param(part() + part() + END, id="two files"),
        pytest.param(_FIELD + END, id="a field"),
        pytest.param(_FIELD + part() + END, id="a field before"),
        pytest.param(part() + _FIELD + END, id="a field after"),
        pytest.param(part(b"x", b'form-data; name="files"; filename="a"') + END, id="other name"),
        pytest.param(part(b"x", b'form-data; name="file"') + END, id="no filename"),
        pytest.param(part(b"x", b'attachment; name="file"; filename="a"') + END, id="attachment"),
        pytest.param(
            part(b"x", b'form-data; name="file"; filename="\xff"') + END, id="not valid UTF-8"
        ),
        pytest.param(b"preamble" + part() + END, id="preamble without a line end"),
        pytest.param(b"p" * 5_000 + b"\r\n" + part() + END, id="long preamble"),
        pytest.param(b"\r\n" * 100_000 + part() + END, id="preamble of line ends"),
        pytest.param(part(), id="no end"),
        pytest.param(part()[:30], id="cut off in a header"),
        pytest.param(
            part(b"x", part()[:0] + b"form-data; " + b"a" * 5_000) + END, id="long header"
        ),
        pytest.param(
            part(b"x", b'form-data; name="file"; filename="a"', *[b"X: y"] * 9) + END, id="headers"
        ),
        pytest.param(
            part(b"x", b'form-data; name="file"; filename="a"', b"Content-Disposition: x") + END,
            id="two dispositions",
        ),
        pytest.param(b'{"files": {"filepath": "/etc/passwd"}}', id="JSON"),
    ],
)
async def test_forms_that_are_not_one_file_are_refused(
    client: Client, space: Space, settings: Settings, body: bytes
) -> None:
    before = objects(settings)
    answer = await _form(client, space, body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error"), answer.text
    assert answer.json()["details"][0]["path"] == "file"
    assert await rows(space) == 0
    assert objects(settings) == before


@pytest.mark.parametrize("type_", ["", "; boundary=", f"; boundary={'x' * 71}"])
async def test_forms_without_a_boundary_are_refused(
    client: Client, space: Space, type_: str
) -> None:
    answer = await _form(client, space, part(), END, type_=f"multipart/form-data{type_}")
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == "Content-Type"


async def test_no_other_operation_reads_a_form(client: Client, space: Space) -> None:
    answer = await client.post(f"{space.path}/api-keys", files={"name": ("a", b"b")})
    assert answer.status_code == 415


async def test_sizes_are_bounded(
    client: Client, space: Space, app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = settings.model_copy(update={"upload_limit": 100_000})
    monkeypatch.setattr(app.state.services, "settings", small)
    before = objects(settings)
    assert (await stored(client, space, bytes(100_000)))["byteSize"] == 100_000
    assert (await _form(client, space, part(bytes(100_000)), END)).status_code == 201
    over = [
        await upload(client, space, bytes(100_001)),
        await upload(client, space, bytes(1_000_000)),
        await upload(client, space, chunks(*[10_000] * 11)),  # type: ignore[arg-type]
        await _form(client, space, part(bytes(100_001)), END),
        await _form(client, space, part(), END, bytes(200_000)),
    ]
    assert [answer.status_code for answer in over] == [413] * 5
    assert await rows(space) == 2
    assert len(objects(settings)) == len(before) + 2


async def test_encoded_bodies_are_refused(client: Client, space: Space) -> None:
    answer = await upload(client, space, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 415


async def test_a_body_that_stalls_is_aborted(
    client: Client,
    space: Space,
    app: FastAPI,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hurried = settings.model_copy(update={"receive_seconds": 0.1})
    monkeypatch.setattr(app.state.services, "settings", hurried)
    before = objects(settings)

    async def stalling() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.sleep(30)

    answer = await upload(client, space, stalling())  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["error"]) == (408, "request_timeout")
    assert objects(settings) == before


async def test_a_session_seen_for_the_first_time_uploads(
    client: Client, space: Space, issuer: DevelopmentIssuer
) -> None:
    session = client.with_token(issuer.mint(space.email, "Another name"))
    assert (await stored(session, space))["byteSize"] == 7


async def test_an_empty_body_is_an_empty_file(client: Client, space: Space) -> None:
    made = await stored(client, space, b"")
    assert made["byteSize"] == 0
    answer = await client.get(made["downloadUrl"])
    assert (answer.status_code, answer.content) == (200, b"")


async def test_a_caller_who_may_not_upload_is_refused_before_the_body(
    server: Server, space: Space, foreign: Space
) -> None:
    announced = f"Content-Length: {LIMIT}"
    path = f"{space.path}/files"
    reader = await space.key([Scope.FILES_READ])
    for case, token, status in (
        (path, "svc_sk_nobody", 401),
        (f"{foreign.path}/files", space.token, 404),
        (path, reader, 403),
    ):
        wire = await server.connect()
        await wire.send(request(case, token, announced))
        assert (await wire.head()).startswith(f"HTTP/1.1 {status} ")
        await wire.close()
    wire = await server.connect()
    await wire.send(request(path, space.token, f"Content-Length: {LIMIT * 2}"))
    assert (await wire.head()).startswith("HTTP/1.1 413 ")
    await wire.close()


async def test_a_client_that_waits_to_continue_may(server: Server, space: Space) -> None:
    wire = await server.connect()
    headers = ("Content-Length: 4", "Expect: 100-continue")
    await wire.send(request(f"{space.path}/files", space.token, *headers))
    assert (await wire.head()).startswith("HTTP/1.1 100 ")
    await wire.send(b"four")
    assert (await wire.head()).startswith("HTTP/1.1 201 ")
    await wire.close()


async def test_a_slow_client_holds_no_transaction_and_leaves_nothing(
    server: Server, space: Space, settings: Settings
) -> None:
    before = objects(settings)
    wires = []
    for _ in range(30):  # more than the pool has connections
        wire = await server.connect()
        await wire.send(request(f"{space.path}/files", space.token, f"Content-Length: {20 * MIB}"))
        await wire.send(bytes(MIB))
        wires.append(wire)

    async def nobody_is_in_a_transaction() -> bool:
        async with space.database.transaction() as work:
            return bool(await work.scalar(_BUSY) == 0)

    await eventually(nobody_is_in_a_transaction, what="the end of all transactions")
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=ENOUGH) as client:
        headers = {"Authorization": f"Bearer {space.token}"}
        assert (await client.get(space.path, headers=headers)).status_code == 200
    for wire in wires[:-1]:
        await wire.close()
    await wires[-1].send(bytes(7 * MIB))
    await wires[-1].close()

    async def nothing_is_left() -> bool:
        return objects(settings) == before

    await eventually(nothing_is_left, what="the end of aborted uploads")
    assert await rows(space) == 0


async def test_memory_does_not_grow_with_the_file(server: Server, space: Space) -> None:
    async def body() -> AsyncIterator[bytes]:
        for _ in range(LIMIT // MIB):
            yield bytes(MIB)

    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, server.memory())
            await asyncio.sleep(0.01)

    async with httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=ENOUGH) as client:
        headers = {"Authorization": f"Bearer {space.token}"}
        path = f"{space.path}/files"
        for _ in range(3):
            await client.post(path, content=bytes(8 * MIB), headers=headers)
        idle = server.memory()
        watching = asyncio.create_task(watch())
        answer = await client.post(path, content=body(), headers=headers)
        assert answer.status_code == 201, answer.text
        size = 0
        async with client.stream("GET", json.loads(answer.text)["data"]["downloadUrl"]) as read:
            async for chunk in read.aiter_bytes():
                size += len(chunk)
        watching.cancel()
    assert size == LIMIT
    assert most - idle < 40 * MIB


async def test_a_reader_that_leaves_ends_the_reading(server: Server, space: Space) -> None:
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=ENOUGH) as client:
        headers = {"Authorization": f"Bearer {space.token}"}
        answer = await client.post(f"{space.path}/files", content=bytes(40 * MIB), headers=headers)
        url = answer.json()["data"]["downloadUrl"]
        for _ in range(5):
            wire = await server.connect()
            await wire.send(f"GET {url} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
            assert (await wire.head()).startswith("HTTP/1.1 200 ")
            await wire.close()
        assert (await client.get("/readyz")).status_code == 200
