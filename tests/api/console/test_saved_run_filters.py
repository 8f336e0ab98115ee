"""Saved filters above the list of runs, without scripts."""

import json

from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

FAILED = {"status": "failed", "errorCode": "declined"}


async def test_a_person_saves_the_filter_in_view(
    app: FastAPI, owner: Visitor, space: Space
) -> None:
    runs = f"/workspaces/{space.id}/runs"
    place = f"/workspaces/{space.id}/run-filters"
    assert "Save filter</button>" not in (await owner.get(runs)).text
    page = await owner.get(runs, params=FAILED)
    assert "Save filter</button>" in page.text
    hostile = "<script>alert(1)</script>\"'"
    answer = await owner.send_form(
        place, page=runs, label=hostile, query=json.dumps(FAILED), share="on"
    )
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{runs}?status=failed&errorCode=declined"
    page = await owner.get(answer.headers["location"])
    assert "<script>alert" not in page.text
    (saved,) = page.text.split(f'action="{place}/')[1:3:2]
    filter_id = saved.split("/")[0]
    assert f'href="{runs}?status=failed&amp;errorCode=declined" aria-current="true"' in page.text
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        page = await viewer.get(runs, params=FAILED)
        assert "alert(1)" in page.text
        assert f"{filter_id}/rename" not in page.text, "it is not theirs to change"
        answer = await viewer.send_form(f"{place}/{filter_id}/delete", page=runs)
        assert answer.status_code == 403
    await owner.send_form(f"{place}/{filter_id}/rename", page=runs, label="Declined")
    assert "Declined" in (await owner.get(runs)).text
    answer = await owner.send_form(f"{place}/{filter_id}/delete", page=runs)
    assert (answer.status_code, answer.headers["location"]) == (303, runs)
    assert "Declined" not in (await owner.get(runs)).text
    for wrong in ("{", "[]", '{"status": "gone"}'):
        answer = await owner.send_form(place, page=runs, label="Wrong", query=wrong)
        assert answer.status_code == 400
