"""Bodies: one meaning, one media type, a bounded size (interface.md#bodies)."""

import gzip
from collections.abc import AsyncIterator

import pytest

from tests.support.client import Client
from tests.support.spaces import Space

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b'{"name": "n", "data": {"a": NaN}}', "data.a"),
        (b'{"name": "n", "data": {"a": [1, Infinity]}}', "data.a.1"),
        (b'{"name": "n", "data": {"a": 1e999}}', "data.a"),
        (b'{"name": "n", "name": "m"}', "name"),
        (b'{"name": "n\\u0000"}', "name"),
        (b'{"name": "\\udc00"}', "name"),
        (b'{"name": "n", "data": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}", ""),
        (b'{"name": "n", "count": 123456789012345678901234567890}', "count"),
        (b"null", ""),
        (b"[]", ""),
        (b"", ""),
        (b'{"name": "n"} x', ""),
        ('{"name": "n"}'.encode("utf-16"), ""),
        (b'{"name": "\xff"}', ""),
        (b'{"name": 5}', "name"),
        (b'{"name": "n", "count": "5"}', "count"),
        (b'{"name": "n", "count": true}', "count"),
        (b'{"name": "n", "count": 5.0}', "count"),
        (b"{}", "name"),
        (b'{"name": "n", "workspaceId": "x"}', "workspaceId"),
        (b'{"name": "n", "__proto__": {}}', "__proto__"),
        (b'{"name": "n", "": 1}', ""),
        (b'{"name": "n", "parts": [{"label": "a"}, {"label": ""}]}', "parts.1.label"),
        (b'{"name": "n", "parts": [{}]}', "parts.0.label"),
        (b'{"name": "n", "parts": [{"label": "a", "x": 1}]}', "parts.0.x"),
        (b'{"name": "n", "parts": {"0": 1}}', "parts"),
    ],
)
async def test_refused_bodies_say_where(
    probes: Client, probe_path: str, body: bytes, path: str
) -> None:
    answer = await probes.post(probe_path, content=body, headers=JSON)
    assert answer.status_code == 400, answer.text
    assert answer.json()["_tag"] == "ApiValidationError"
    assert answer.json()["details"][0]["path"] == path
    assert answer.json()["details"][0]["message"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": "application/jsonx"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {"Content-Type": "application/json", "Content-Encoding": "br"},
    ],
)
async def test_media_types_other_than_json_are_refused(
    probes: Client, probe_path: str, headers: dict[str, str]
) -> None:
    answer = await probes.post(probe_path, content=b'{"name": "n"}', headers=headers)
    assert answer.status_code == 415
    assert answer.json()["error"] == "unsupported_media_type"


async def test_a_compressed_bomb_is_not_opened(probes: Client, probe_path: str) -> None:
    bomb = gzip.compress(b"0" * 50_000_000)
    headers = {**JSON, "Content-Encoding": "gzip"}
    answer = await probes.post(probe_path, content=bomb, headers=headers)
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json",
        "Application/JSON; charset=UTF-8",
        'application/json;charset="utf-8"',
    ],
)
async def test_json_by_its_other_spellings(
    probes: Client, probe_path: str, media_type: str
) -> None:
    body = b'{"name": "\xc3\xa9"}'
    answer = await probes.post(probe_path, content=body, headers={"Content-Type": media_type})
    assert answer.json()["data"]["value"]["name"] == "é"


async def _chunks(total: int) -> AsyncIterator[bytes]:
    yield b'{"name": "n", "data": {"x": "'
    for _ in range(total // 65536):
        yield b"x" * 65536
    yield b'"}}'


async def test_bodies_are_counted_not_believed(
    probes: Client, probe_path: str, space: Space
) -> None:
    def body(size: int) -> bytes:
        return b'{"name": "n", "data": {"x": "' + b"x" * (size - 32) + b'"}}'

    limit = 1024 * 1024
    batches = f"{space.path}/batches"
    assert (await probes.post(probe_path, content=body(limit), headers=JSON)).status_code == 200
    too_large = await probes.post(probe_path, content=body(limit + 1), headers=JSON)
    assert too_large.status_code == 413
    assert too_large.json()["error"] == "payload_too_large"
    streamed = await probes.post(probe_path, content=_chunks(2 * limit), headers=JSON)
    assert streamed.status_code == 413
    assert (await probes.post(batches, content=_chunks(2 * limit), headers=JSON)).status_code == 200
    assert (await probes.post(batches, content=_chunks(9 * limit), headers=JSON)).status_code == 413
    lie = {**JSON, "Content-Length": "5", "Transfer-Encoding": "chunked"}
    answer = await probes.post(probe_path, content=_chunks(2 * limit), headers=lie)
    assert answer.status_code == 413


@pytest.mark.parametrize("declared", [False, True], ids=["streamed", "declared"])
async def test_a_refused_body_is_taken_in_so_that_its_sender_listens(
    probes: Client, probe_path: str, declared: bool
) -> None:
    async def taken(mebibytes: int) -> int:
        sent = 0

        async def body() -> AsyncIterator[bytes]:
            nonlocal sent
            for _ in range(mebibytes):
                yield b"x" * 1024 * 1024
                sent += 1

        length = {"Content-Length": str(mebibytes * 1024 * 1024)} if declared else {}
        answer = await probes.post(probe_path, content=body(), headers={**JSON, **length})
        assert answer.status_code == 413
        return sent

    assert await taken(8) == 8
    assert await taken(100) < 40


@pytest.mark.parametrize("body", [b"", b"{}", b" {} "])
async def test_bodies_that_may_be_empty(probes: Client, space: Space, body: bytes) -> None:
    answer = await probes.post(f"{space.path}/wishes", content=body, headers=JSON)
    assert answer.status_code == 200
    dropped = await probes.request("DELETE", f"{space.path}/wishes", content=body, headers=JSON)
    assert dropped.status_code == 200


async def test_an_operation_without_a_body_takes_no_keys(probes: Client, space: Space) -> None:
    answer = await probes.request("DELETE", f"{space.path}/wishes", json={"all": True})
    assert answer.status_code == 400


async def test_a_hundred_thousand_keys_are_read_in_time(probes: Client, probe_path: str) -> None:
    data = {f"k{index}": index for index in range(60_000)}
    answer = await probes.post(probe_path, json={"name": "n", "data": data})
    assert answer.json()["data"]["value"]["data"] == data
