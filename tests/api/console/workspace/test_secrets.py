"""Secrets by their page: values go in and never come out."""

from fastapi import FastAPI

from models.automation.secrets.store import secret_values
from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.settings_pages import HOSTILE, posted, sent, settings_of
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

VALUE = "a value that no page may show"


async def stored(space: Space, *names: str) -> dict[str, str]:
    async with space.database.reading() as work:
        return await secret_values(work, space.keys, space.id, names)


async def test_a_secret_is_stored_replaced_and_removed(owner: Visitor, space: Space) -> None:
    page = settings_of(space, "secrets")
    assert "No secrets yet" in (await owner.get(page)).text
    for value in (VALUE, f"{VALUE}\nof two lines"):
        target = await sent(owner, page, page, name="CRM_TOKEN", secretValue=value)
        assert target == f"{page}?notice=saved"
        assert await stored(space, "CRM_TOKEN") == {"CRM_TOKEN": value}
        shown = await owner.get(target)
        assert "CRM_TOKEN" in shown.text
        assert VALUE not in shown.text
    path = settings_of(space, "secrets", "CRM_TOKEN", "delete")
    assert await sent(owner, page, path) == f"{page}?notice=removed"
    assert await stored(space, "CRM_TOKEN") == {}
    assert (await posted(owner, page, path, {})).status_code == 404


async def test_a_refusal_shows_the_name_and_not_the_value(owner: Visitor, space: Space) -> None:
    page = settings_of(space, "secrets")
    for name in ("not a name", HOSTILE):
        answer = await posted(owner, page, page, {"name": name, "secretValue": VALUE})
        assert answer.status_code == 400
        assert "Use up to 63 letters" in answer.text
        assert "<img" not in answer.text
        assert VALUE not in answer.text
    answer = await posted(owner, page, page, {"name": "LONG", "secretValue": VALUE * 1000})
    assert answer.status_code == 400
    assert 'class="fault"' in answer.text
    assert VALUE not in answer.text
    assert 'value="LONG"' in answer.text


async def test_a_role_that_was_taken_away_shows_no_value_either(
    app: FastAPI, space: Space, client: Client
) -> None:
    user_id, _ = await space.member(Role.EDITOR)
    page = settings_of(space, "secrets")
    async with await signed_in(app, space, user_id) as editor:
        token = await editor.token(page)
        await client.patch(f"{space.path}/members/{user_id}", json={"role": "viewer"})
        fields = {"csrfToken": token, "name": "CRM_TOKEN", "secretValue": VALUE}
        answer = await editor.post(page, data=fields)
        assert answer.status_code == 403
        assert VALUE not in answer.text
        shown = await editor.get(page)
        assert shown.status_code == 200
        assert "Replace" not in shown.text
    assert await stored(space, "CRM_TOKEN") == {}
