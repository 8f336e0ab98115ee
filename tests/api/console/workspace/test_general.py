"""General settings: what a workspace is called, and its end."""

from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.settings_pages import HOSTILE, Visit, assert_inert, sent, settings_of
from tests.support.spaces import Space
from tests.support.visitor import Visitor


async def test_an_owner_changes_name_slug_and_icon(owner: Visitor, space: Space) -> None:
    page = settings_of(space)
    slug = f"renamed-{space.id.hex[:8]}"
    target = await sent(owner, page, page, name=HOSTILE, slug=slug, icon="🗺")
    assert target == f"{page}?notice=saved"
    shown = await owner.get(target)
    assert_inert(shown)
    for word in ("Saved", slug, "🗺"):
        assert word in shown.text
    await sent(owner, page, page, name="Plain", slug=slug)
    assert "🗺" not in (await owner.get(page)).text


async def test_entered_values_are_shown_again_with_their_errors(
    owner: Visitor, space: Space
) -> None:
    page = settings_of(space)
    answer = await owner.send_form(page, page, name="Kept", slug="Not A Slug", icon="🗺")
    assert answer.status_code == 400
    for word in ('value="Kept"', 'value="Not A Slug"', 'aria-invalid="true"', "🗺"):
        assert word in answer.text
    assert "Kept" not in (await owner.get(page)).text


async def test_a_slug_that_is_taken_is_said_in_the_page(
    owner: Visitor, space: Space, foreign: Space
) -> None:
    page, taken = settings_of(space), f"test-{foreign.user_id.hex}"
    answer = await owner.send_form(page, page, name="Kept", slug=taken)
    assert answer.status_code == 409
    assert f"The slug {taken} is taken" in answer.text
    assert 'value="Kept"' in answer.text


async def test_a_member_who_may_not_change_reads(visit: Visit, space: Space) -> None:
    for role in (Role.VIEWER, Role.GUEST):
        member = await visit(role)
        page = settings_of(space)
        shown = await member.get(page)
        assert shown.status_code == 200
        assert "Save changes" not in shown.text
        answer = await member.send_form(page, page, name="Taken over", slug="taken-over")
        assert answer.status_code == 403


async def test_a_workspace_is_deleted_by_its_name(
    owner: Visitor, visit: Visit, space: Space, client: Client
) -> None:
    page, path = settings_of(space), settings_of(space, "delete")
    answer = await owner.send_form(path, page, confirmation="Tes")
    assert answer.status_code == 400
    assert "Enter the workspace name" in answer.text
    admin = await visit(Role.ADMIN)
    assert (await admin.send_form(path, page, confirmation="Test")).status_code == 403
    assert (await client.get(space.path)).status_code == 200
    assert await sent(owner, page, path, confirmation="Test") == "/"
    assert (await owner.get(page)).status_code == 404
    assert (await client.get(space.path)).status_code in {401, 404}
