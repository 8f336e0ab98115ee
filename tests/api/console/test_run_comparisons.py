"""The page of two runs side by side, without scripts."""

from typing import Any

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.ageing import make_automation
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in
from tests.support.written_runs import insert_run, node

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


@pytest.fixture
async def version(space: Space) -> Any:
    return await make_automation(space)


async def test_the_first_difference_is_marked(owner: Visitor, space: Space, version: Any) -> None:
    reference = await insert_run(space, version, 0, [node("a", 0), node("b", 1)])
    run = await insert_run(
        space,
        version,
        1,
        [
            node("a", 0),
            node("b", 1, status="failed", output={"n": HOSTILE}, error=HOSTILE),
            node(HOSTILE, 2),
        ],
        status="failed",
        trigger_payload={HOSTILE: 1},
    )
    assert f'href="/runs/{run}/comparison"' in (await owner.get(f"/runs/{run}")).text
    page = (await owner.get(f"/runs/{run}/comparison")).text
    assert "First difference at" in page
    (marked,) = page.split('id="parts"')[1:]
    assert marked.index(f'href="/runs/{run}#b"') < marked.index("first difference")
    assert page.count("first difference") == 1
    assert "status, output, error" in page
    assert f'value="{reference}" selected' in page
    assert f"runs/{run}/comparison \\" in page, "the equal call"
    assert "<img" not in page
    assert "<script>alert" not in page
    turned = (await owner.get(f"/runs/{reference}/comparison?with={run}")).text
    assert f'value="{run}" selected' in turned


async def test_a_run_that_nothing_succeeded_before_offers_others(
    owner: Visitor, space: Space, version: Any
) -> None:
    run = await insert_run(space, version, 0, [node("a", 0)], status="failed")
    other = await insert_run(space, version, 1, [node("a", 0)], status="failed")
    page = await owner.get(f"/runs/{run}/comparison?with=")
    assert page.status_code == 200
    assert "Choose a run to compare with" in page.text
    assert f'value="{other}"' in page.text
    assert f'value="{run}"' not in page.text
    page = await owner.get(f"/runs/{run}/comparison", params={"with": other})
    assert "No differences" in page.text


async def test_long_runs_make_a_small_page(owner: Visitor, space: Space, version: Any) -> None:
    def turns(text: str) -> list[dict[str, Any]]:
        return [
            node("charge", n, scope_key=f"each:{n}", output={f"k{k}": text * 90 for k in range(9)})
            for n in range(300)
        ]

    await insert_run(space, version, 0, turns("old"))
    run = await insert_run(space, version, 1, turns("new"), status="failed")
    page = await owner.get(f"/runs/{run}/comparison")
    assert "each:0" in page.text
    assert "More nodes than shown" in page.text
    assert len(page.content) < 150_000


async def test_a_guest_sees_no_comparison(
    app: FastAPI, owner: Visitor, space: Space, version: Any
) -> None:
    run = await insert_run(space, version, 0, [node("a", 0)])
    assert (await owner.get(f"/runs/{run}/comparison?with={run}")).status_code == 200
    other = await insert_run(space, await make_automation(space), 0)
    answer = await owner.get(f"/runs/{run}/comparison?with={other}")
    assert answer.status_code == 404, "of another automation"
    user_id, _ = await space.member(Role.GUEST)
    async with await signed_in(app, space, user_id) as guest:
        assert (await guest.get(f"/runs/{run}/comparison?with={run}")).status_code == 404
