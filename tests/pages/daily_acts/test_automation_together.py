"""Two people and one draft: each sees the other, and no work is lost without a word."""

import json

import pytest

from models.core.access.rules import Role
from tests.support.browser import Page, Protocol
from tests.support.canvas import draft, face, fill, is_there, one, opened, press, saved
from tests.support.engine import Json, graph, node
from tests.support.person import Person
from tests.support.server import Server

pytestmark = [pytest.mark.takes(seconds=60)]

BAR = "document.querySelector('.canvas-bar.wrong')"
SAID = "document.querySelector('.bars').innerText"


def small() -> Json:
    return graph(
        node("read", "transform", label="Read", output={"total": 42}),
        node("check", "condition", label="Large?", expression="nodes.read.total > 10.0"),
        node("tell", "transform", label="Tell", output={"told": True}),
        edges=[("read", "check"), ("check", "tell", "true")],
    )


MERGE = """(async ([base, mine, theirs]) => {
  const { merged } = await import('/pages/canvas/together.js');
  const asDocument = (graph) => ({ graph, trigger: { kind: 'manual' } });
  const { document, clashes } = merged(...[base, mine, theirs].map(asDocument));
  return [document.graph, clashes];
})"""


async def merge(page: Page, base: Json, mine: Json, theirs: Json) -> tuple[Json, list[str]]:
    content, clashes = await page.evaluate(f"{MERGE}({json.dumps([base, mine, theirs])})")
    return content, clashes


def labelled(content: Json, **labels: str) -> Json:
    nodes = [{**each, "label": labels.get(each["id"], each["label"])} for each in content["nodes"]]
    return {**content, "nodes": nodes}


@pytest.mark.long
async def test_changes_of_both_are_in_one_document(page: Page, server: Server) -> None:
    await page.open(f"{server.url}/sign-in")
    base = small()
    mine = labelled(base, read="Mine")
    theirs = labelled(base, tell="Theirs")
    theirs["nodes"].append(node("new", "stop", label="New"))
    theirs["edges"] = [*theirs["edges"], {"id": "e9", "from": "tell", "to": "new"}]
    content, clashes = await merge(page, base, mine, theirs)
    assert clashes == []
    assert [each["label"] for each in content["nodes"]] == ["Mine", "Large?", "Theirs", "New"]
    ways = [(each["from"], each["to"]) for each in content["edges"]]
    assert ways == [("read", "check"), ("check", "tell"), ("tell", "new")]
    # What both changed is as mine, and theirs stands beside it and does nothing.
    content, clashes = await merge(page, base, mine, labelled(base, read="Theirs"))
    assert clashes == ["Mine"]
    nodes = [(each["id"], each["label"], each.get("disabled", False)) for each in content["nodes"]]
    assert nodes[:2] == [("read", "Mine", False), ("read_theirs", "Theirs (theirs)", True)]
    assert nodes[2:] == [("check", "Large?", False), ("tell", "Tell", False)]
    # A removal holds, unless the other one changed what was removed.
    less = {**base, "nodes": base["nodes"][:2], "edges": base["edges"][:1]}
    content, clashes = await merge(page, base, less, theirs)
    assert [each["id"] for each in content["nodes"]] == ["read", "check", "tell", "new"]
    content, _ = await merge(page, base, less, labelled(base, read="Theirs"))
    assert [each["id"] for each in content["nodes"]] == ["read", "check"]
    assert [(each["from"], each["to"]) for each in content["edges"]] == [("read", "check")]


async def test_notes_of_both_are_in_one_document(page: Page, server: Server) -> None:
    await page.open(f"{server.url}/sign-in")

    def noted(**texts: str) -> Json:
        place = {"position": {"x": 0, "y": 0}, "width": 240, "height": 120, "color": "blue"}
        return {
            **small(),
            "notes": [{"id": id_, "text": text, **place} for id_, text in texts.items()],
        }

    base = noted(a="Why", b="Who")
    content, clashes = await merge(page, base, noted(a="Mine", b="Who"), noted(a="Why", c="New"))
    assert (content["notes"], clashes) == (noted(a="Mine", c="New")["notes"], [])
    content, _ = await merge(page, base, noted(a="Mine"), noted(a="Theirs"))
    assert [(each["id"], each["text"], each["position"]["y"]) for each in content["notes"]] == [
        ("a", "Mine", 0),
        ("a_theirs", "Theirs", 140),
    ]
    content, _ = await merge(page, base, small(), small())
    assert "notes" not in content


@pytest.mark.long
async def test_other_editors_are_shown_while_they_edit(
    page: Page, person: Person, chromium: Protocol
) -> None:
    automation_id = await person.automation(small(), publish=False)
    other_id, _ = await person.space.member(Role.ADMIN)
    await opened(page, person, automation_id)
    others = "document.querySelector('.others')?.innerText ?? ''"
    async with chromium.page() as second:
        await opened(second, person, automation_id, user_id=other_id)
        await page.until(f"({others}).includes('Also editing: ')")
        await second.until(f"({others}).includes('Also editing: ')")
        # What one saves, the other sees, and reads so.
        await second.click(face("tell"))
        await fill(second, "label", "Theirs")
        await saved(second)
        await page.until(f"{one(face('tell') + ' .label')}.innerText === 'Theirs'")
        said = await page.evaluate(SAID)
        assert "changed this draft at " in said
        assert "You see it as it is now." in said
        # The bar names who changed it and when, also after they have left.
        name = await page.evaluate("document.querySelector('.others').title")
        member = said.partition(" changed this draft")[0].split("\n")[-1]
        assert member not in {"", "Someone else"}
        assert f"Changed by {member}, " in name
        await second.open("about:blank")
    await page.until(f"!({others}).includes('Also editing')")
    assert "Changed by " in await page.evaluate(others)


async def moved(page: Page, person: Person, automation_id: str) -> None:
    """Someone else saves a node, and then this person changes another one."""
    await opened(page, person, automation_id)
    await page.evaluate("window.fetched = window.fetch; window.fetch = () => Promise.reject(1)")
    content = labelled((await draft(person, automation_id))["graph"], tell="Theirs")
    content["nodes"].append(node("new", "stop", label="New"))
    path = f"{person.space.path}/automations/{automation_id}"
    await person.call("PATCH", path, {"graph": content})
    await page.click(face("read"))
    await fill(page, "label", "Mine")
    await page.evaluate("window.fetch = window.fetched")
    # The same person did, by the API.
    await page.until(f"{BAR}.innerText.includes('You, in another tab or by the API, changed')")
    page.problems = [each for each in page.problems if "409" not in each]


@pytest.mark.long
@pytest.mark.parametrize("choice", ["Keep both", "Keep mine", "Use theirs"])
async def test_a_draft_that_has_moved_is_a_choice_that_undo_reverts(
    page: Page, person: Person, choice: str
) -> None:
    automation_id = await person.automation(small(), publish=False)
    await moved(page, person, automation_id)

    async def labels() -> list[str]:
        await saved(page)
        nodes = (await draft(person, automation_id))["graph"]["nodes"]
        return [each["label"] for each in nodes]

    assert await labels_now(person, automation_id) == ["Read", "Large?", "Theirs", "New"]
    await press(page, choice)
    expected = {
        "Keep both": ["Mine", "Large?", "Theirs", "New"],
        "Keep mine": ["Mine", "Large?", "Tell"],
        "Use theirs": ["Read", "Large?", "Theirs", "New"],
    }
    assert await labels() == expected[choice]
    await page.press("Escape")
    await press(page, "Undo")
    await page.until("document.querySelector('.save-state').innerText !== 'Draft saved'")
    undone = {**expected, "Keep mine": expected["Use theirs"], "Use theirs": expected["Keep mine"]}
    undone["Keep both"] = expected["Use theirs"]
    assert await labels() == undone[choice]


async def labels_now(person: Person, automation_id: str) -> list[str]:
    return [each["label"] for each in (await draft(person, automation_id))["graph"]["nodes"]]


@pytest.mark.long
async def test_a_session_that_ends_keeps_the_draft_in_the_browser(
    page: Page, person: Person
) -> None:
    automation_id = await person.automation(small(), publish=False)
    await opened(page, person, automation_id)
    await page.send("Network.clearBrowserCookies")
    await page.click(face("read"))
    await fill(page, "label", "Mine")
    await page.until(f"{BAR}.innerText.includes('Your session has expired.')")
    await fill(page, "label", "Mine at last")
    await page.evaluate("document.activeElement.blur()")
    await press(page, "Sign in")
    await page.until("location.pathname === '/sign-in'")
    assert page.questions == []
    await opened(page, person, automation_id)
    await page.until(f"{one(face('read') + ' .label')}.innerText === 'Mine at last'")
    assert "restored from this browser" in await page.evaluate(SAID)
    await saved(page)
    assert (await labels_now(person, automation_id))[0] == "Mine at last"
    # It is there once, and for this person alone.
    await page.open(f"{person.home}/automations/{automation_id}/edit")
    await page.until(is_there("read"))
    assert "restored" not in await page.evaluate(SAID)
    page.problems = [each for each in page.problems if "401" not in each]
