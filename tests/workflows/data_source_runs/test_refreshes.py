"""Refreshing data sources, from the request to the records, with real workers and a real server."""

import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from models.core.base import Id
from models.sources.data_source_runs.staging import find_run
from tests.support.endpoint import Answer, reply
from tests.support.sources import Source, goods

COUNTED = ("rowsFetched", "rowsInserted", "rowsUpdated", "rowsUnchanged", "rowsRemoved")


def counts(run: Any) -> tuple[int, ...]:
    return tuple(run["stats"][name] for name in COUNTED)


@pytest.mark.long
async def test_rows_are_inserted_updated_and_removed(source: Any) -> None:
    goods_of = await source()
    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2), ("c", "Cake", 3)))
    first = await goods_of.refresh()
    assert (first["status"], counts(first)) == ("succeeded", (3, 3, 0, 0, 0)), first
    took = datetime.fromisoformat(first["completedAt"]) - datetime.fromisoformat(first["startedAt"])
    assert round(took.total_seconds() * 1000) == pytest.approx(first["stats"]["durationMs"], abs=1)
    before = await goods_of.records()
    assert [before[code]["title"] for code in "abc"] == ["Apple", "Bread", "Cake"]

    goods_of.answers(
        goods(("a", "Apple", 1), ("b", "Bread", 2.5), ("c", "Cake", None), ("d", "", 4))
    )
    second = await goods_of.refresh()
    assert (second["status"], counts(second)) == ("succeeded", (4, 1, 2, 1, 0)), second
    after = await goods_of.records()
    assert after["a"] == before["a"], "an unchanged row is written nowhere"
    assert after["b"]["data"]["price"] == 2.5
    assert "price" not in after["c"]["data"], "a value that is gone is cleared"
    assert after["c"]["id"] == before["c"]["id"]

    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2.5), ("d", "", 4)))
    third = await goods_of.refresh()
    assert (third["status"], counts(third)) == ("succeeded", (3, 0, 0, 3, 1)), third
    assert set(await goods_of.records()) == {"a", "b", "d"}

    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2.5), ("c", "Cake", 5), ("d", "", 4)))
    fourth = await goods_of.refresh()
    assert counts(fourth) == (4, 0, 1, 3, 0), fourth
    back = await goods_of.records()
    assert back["c"]["id"] == before["c"]["id"], "a row that comes back is the same record"


@pytest.mark.long
async def test_without_a_mapping_every_column_fills_the_field_it_suggests(source: Any) -> None:
    goods_of = await source(fields=[])
    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2)))
    first = await goods_of.refresh()
    assert (first["status"], counts(first)) == ("succeeded", (2, 2, 0, 0, 0)), first
    before = await goods_of.records()
    assert before["a"]["data"] == {"code": "a", "title": "Apple", "price": 1}
    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2.5)))
    second = await goods_of.refresh()
    assert (second["status"], counts(second)) == ("succeeded", (2, 0, 1, 1, 0)), second
    after = await goods_of.records()
    assert {code: one["id"] for code, one in after.items()} == {
        code: one["id"] for code, one in before.items()
    }


async def test_a_key_that_no_column_suggests_is_named(source: Any) -> None:
    goods_of = await source(fields=[], keyFields=["sku"])
    goods_of.answers(goods(("a", "Apple", 1)))
    failed = await goods_of.refresh()
    assert (failed["status"], failed["errorKind"]) == ("failed", "mapping")
    assert "No column fills the key field sku. Columns fill: " in failed["error"]
    assert "price (price)" in failed["error"]


@pytest.mark.long
async def test_a_source_that_shrinks_too_much_is_stopped(source: Any) -> None:
    goods_of = await source()
    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2), ("c", "Cake", 3)))
    await goods_of.refresh()
    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2)))
    stopped = await goods_of.refresh()
    assert (stopped["status"], stopped["errorKind"]) == ("failed", "guard")
    assert set(await goods_of.records()) == {"a", "b", "c"}
    forced = await goods_of.refresh(force=True)
    assert (forced["status"], forced["stats"]["rowsRemoved"]) == ("succeeded", 1)
    assert set(await goods_of.records()) == {"a", "b"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(reply(401), "auth", id="denied"),
        pytest.param(reply(200, "{not json"), "parse", id="malformed"),
        pytest.param(reply(200, {"message": "no rows here"}), "mapping", id="elsewhere"),
        pytest.param(reply(200, "<html>Log in"), "parse", id="html"),
        pytest.param(reply(200, ""), "guard", id="empty"),
        pytest.param(reply(302, location="http://169.254.169.254/"), "fetch", id="metadata"),
    ],
)
async def test_a_failed_fetch_removes_nothing(source: Any, answer: Answer, kind: str) -> None:
    goods_of = await source()
    goods_of.answers(goods(("a", "Apple", 1)))
    await goods_of.refresh()
    goods_of.answers(answer)
    failed = await goods_of.refresh()
    assert (failed["status"], failed["errorKind"]) == ("failed", kind), failed
    assert set(await goods_of.records()) == {"a"}


@pytest.mark.long
async def test_an_open_quotation_mark_changes_nothing(source: Any) -> None:
    goods_of = await source(kind="http_csv")
    goods_of.answers(reply(200, "code,name,price\na,Apple,1\nb,Pear,2\n", type_="text/csv"))
    await goods_of.refresh()
    content = 'code,name,price\na,"Apple,1\nb,Pear,2\n'
    goods_of.answers(reply(200, content, type_="text/csv"))
    failed = await goods_of.refresh(force=True)
    assert (failed["status"], failed["errorKind"]) == ("failed", "parse"), failed
    assert "in line 2 is not closed" in failed["error"]
    assert set(await goods_of.records()) == {"a", "b"}


@pytest.mark.long
async def test_a_server_that_is_busy_is_asked_again(source: Any) -> None:
    goods_of = await source()
    goods_of.answers(reply(429, retry_after="1"), goods(("a", "Apple", 1)))
    run = await goods_of.refresh()
    assert (run["status"], counts(run)) == ("succeeded", (1, 1, 0, 0, 0)), run


@pytest.mark.long
async def test_a_source_that_has_not_changed_is_not_sent_again(source: Any) -> None:
    goods_of = await source()

    async def refresh(**body: Any) -> tuple[Any, str | None]:
        """A refresh, and on which condition its source was asked."""
        goods_of.endpoint.requests.clear()
        run = await goods_of.refresh(**body)
        assert run["status"] == "succeeded", run
        return run, goods_of.endpoint.requests[0].headers.get("if-none-match")

    rows = [("a", "Apple", 1), ("b", "Bread", 2)]
    sent = reply(200, json.loads(goods(*rows).partition(b"\r\n\r\n")[2]), etag='"one"')
    goods_of.answers(sent)
    assert (await refresh())[1] is None
    before = await goods_of.records()

    goods_of.answers(reply(304))
    for _ in range(2):
        run, condition = await refresh()
        assert (condition, counts(run)) == ('"one"', (2, 0, 0, 2, 0))
        assert run["stats"]["bytesFetched"] == 0
        assert await goods_of.records() == before

    goods_of.answers(sent)
    run, condition = await refresh(force=True)
    assert (condition, counts(run)) == (None, (2, 0, 0, 2, 0))
    assert run["stats"]["bytesFetched"] > 0

    config = {"url": goods_of.endpoint.url, "query": {"other": "1"}}
    await goods_of.client.patch(goods_of.path, json={"config": config})
    assert (await refresh())[1] is None, "another config is another source"
    assert (await refresh())[1] == '"one"'

    await goods_of.client.delete(f"/v1/records/{before['a']['id']}")
    run, condition = await refresh()
    assert (condition, run["stats"]["rowsSkipped"]) == (None, 1), "the target has changed"

    run, condition = await refresh()
    assert condition == '"one"'
    await goods_of.client.post(f"{goods_of.path}/runs/{run['id']}/revert")
    assert (await refresh())[1] is None, "what was taken back is read again"


@pytest.mark.long
async def test_the_same_bytes_are_not_read_again(
    source: Callable[..., Awaitable[Source]],
) -> None:
    goods_of = await source()
    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2)))
    await goods_of.refresh()
    before = await goods_of.records()
    for is_read, body in ((False, {}), (False, {}), (True, {"force": True}), (False, {})):
        run = await goods_of.refresh(**body)
        assert (run["status"], counts(run)) == ("succeeded", (2, 0, 0, 2, 0)), run
        assert run["stats"]["bytesFetched"] > 0
        async with goods_of.space.database.transaction() as work:
            found = await find_run(work, Id(run["id"]))
        assert found.progress.get("staged", False) is is_read
        assert await goods_of.records() == before

    await goods_of.client.delete(f"/v1/records/{before['a']['id']}")
    assert (await goods_of.refresh())["stats"]["rowsSkipped"] == 1, "the target has changed"
    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 3)))
    assert counts(await goods_of.refresh()) == (2, 0, 1, 0, 0), "other bytes are other rows"


@pytest.mark.long
async def test_new_records_are_numbered_as_their_rows_stand(
    source: Callable[..., Awaitable[Source]],
) -> None:
    goods_of = await source()
    field = {"label": "Serial", "kind": "auto_number"}
    added = await goods_of.client.post(f"/v1/databases/{goods_of.target}/fields", json=field)
    assert added.status_code == 201, added.text
    for rows in ("ca", "caebd"):
        goods_of.answers(goods(*((code, "", 1) for code in rows)))
        await goods_of.refresh()
    serials = {code: one["system"]["serial"] for code, one in (await goods_of.records()).items()}
    assert serials == {"c": 1, "a": 2, "e": 3, "b": 4, "d": 5}


@pytest.mark.long
async def test_the_newest_run_is_reverted(source: Any) -> None:
    goods_of = await source(removalGuardPercent=100)
    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2), ("c", "Cake", 3)))
    first = await goods_of.refresh()
    before = await goods_of.records()
    goods_of.answers(goods(("a", "Pear", 9), ("b", "Bread", 7), ("d", "Dates", 4)))
    second = await goods_of.refresh()
    changed = {"data": {"price": 8}}
    await goods_of.client.patch(f"/v1/records/{before['b']['id']}", json=changed)

    refused = await goods_of.client.post(f"{goods_of.path}/runs/{first['id']}/revert")
    assert refused.status_code == 409
    reverted = await goods_of.client.post(f"{goods_of.path}/runs/{second['id']}/revert")
    assert reverted.status_code == 200, reverted.text
    shown = reverted.json()["data"]
    assert shown["reversal"] == {"reverted": 3, "kept": 1}
    assert shown["revertedAt"] >= shown["completedAt"]
    after = await goods_of.records()
    assert set(after) == {"a", "b", "c"}
    assert after["a"]["data"] == before["a"]["data"]
    assert after["b"]["data"]["price"] == 8, "what somebody changed since is kept"
    again = await goods_of.client.post(f"{goods_of.path}/runs/{second['id']}/revert")
    assert again.json()["data"] == shown

    third = await goods_of.refresh()
    assert (third["stats"]["rowsInserted"], third["stats"]["rowsUpdated"]) == (1, 2)
    assert (await goods_of.records())["a"]["title"] == "Pear"


@pytest.mark.long
async def test_an_action_refreshes_and_waits(source: Any) -> None:
    goods_of = await source()
    goods_of.answers(goods(("a", "Apple", 1)))
    space, client = goods_of.space, goods_of.client
    config = {"kind": "refresh_data_source", "dataSourceId": goods_of.id}
    body = {"label": "Refresh", "kind": "refresh_data_source", "config": config}
    made = (await client.post(f"{space.path}/actions", json=body)).json()["data"]
    run = (await client.post(f"{space.path}/actions/{made['id']}/run", json={})).json()["data"]
    assert run["status"] == "succeeded", run
    assert run["result"]["stats"]["rowsInserted"] == 1
    [refresh] = (await client.get(f"{goods_of.path}/runs")).json()["data"]
    assert (refresh["id"], refresh["trigger"]) == (run["result"]["runId"], "action")
    shown = (await client.get(goods_of.path)).json()["data"]
    assert (shown["latestRun"], shown["latestStatus"]) == (refresh, "succeeded")


@pytest.mark.long
async def test_pages_are_followed_to_the_last_one(source: Any) -> None:
    pages = [("a", "Apple", 1), ("b", "Bread", 2), ("c", "Cake", 3)]
    config: Any
    for config, answers in [
        (
            {"pagination": {"type": "page", "param": "page"}},
            [goods(one) for one in pages] + [goods()],
        ),
        (
            {
                "pagination": {"type": "cursor", "param": "after", "cursorPath": "$.next"},
                "jsonPath": "$.rows[*]",
            },
            [
                reply(
                    200,
                    {
                        "rows": [dict(zip(("code", "name", "price"), one, strict=True))],
                        "next": place + 1 if place < 2 else None,
                    },
                )
                for place, one in enumerate(pages)
            ],
        ),
    ]:
        goods_of = await source()
        config["url"] = goods_of.endpoint.url
        changed = await goods_of.client.patch(goods_of.path, json={"config": config})
        assert changed.status_code == 200, changed.text
        goods_of.answers(*answers)
        run = await goods_of.refresh()
        assert (run["status"], counts(run)) == ("succeeded", (3, 3, 0, 0, 0)), run
        assert set(await goods_of.records()) == {"a", "b", "c"}


@pytest.mark.long
async def test_records_found_by_other_keys_are_not_gone(source: Any) -> None:
    goods_of = await source()
    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2), ("c", "Cake", 3)))
    await goods_of.refresh()
    before = await goods_of.records()
    changed = await goods_of.client.patch(goods_of.path, json={"keyFields": ["title"]})
    assert changed.status_code == 200, changed.text
    run = await goods_of.refresh()
    assert (run["status"], counts(run)) == ("succeeded", (3, 0, 0, 3, 0)), run
    assert await goods_of.records() == before
    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2)))
    run = await goods_of.refresh(force=True)
    assert (run["status"], counts(run)) == ("succeeded", (2, 0, 0, 2, 1)), run
