"""The page of a run in a real browser: what a person sees, presses and reads."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete

from models.people.credentials import browser_session
from tests.support.browser import Page
from tests.support.endpoint import Serve, never, once, reply
from tests.support.engine import Json, graph, node
from tests.support.patience import eventually
from tests.support.person import Person, sign_in
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=30)

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def automations(server: Server, space: Space) -> Person:
    return Person(server, space)


async def enter(page: Page, server: Server, run_id: str, space: Space, place: str = "") -> None:
    """Open the page of a run in a session."""
    await sign_in(page, server, space)
    await page.open(f"{server.url}/runs/{run_id}{place}")
    await page.until("document.querySelector('#graph .node') !== null")


def status(node_id: str) -> str:
    """The status a node is drawn in, as an expression."""
    return f"document.querySelector('[data-node={node_id}]').dataset.status"


def colour(node_id: str) -> str:
    """The colour of a node's border."""
    box = f"document.querySelector('[data-node={node_id}] .box')"
    return f"getComputedStyle({box}).stroke"


async def ended(page: Page, how: str = "succeeded") -> None:
    await page.until(f"document.getElementById('status').dataset.status === '{how}'")
    await page.until("document.getElementById('live').hidden")


@pytest.mark.long
async def test_a_person_follows_a_run_to_its_end(
    page: Page, server: Server, automations: Person, serve: Serve, screens: Path
) -> None:
    seen = asyncio.Event()
    endpoint = await serve(once(seen, reply(200, {"stock": 7})))
    run_id = await automations.run(
        graph(
            node("prepare", "transform", label="Prepare the order", output={"ok": True}),
            node("call", "http_request", label="Ask the warehouse", url=endpoint.url),
            node("pause", "delay", label="Give it a moment", seconds=5),
            node("bill", "transform", label="Write the bill", output={"total": 42.5}),
            edges=[("prepare", "call"), ("call", "pause"), ("pause", "bill")],
        ),
        {"customer": "Ada"},
    )
    await enter(page, server, run_id, automations.space)
    await page.until(f"{status('call')} === 'running'")
    assert await page.evaluate(status("prepare")) == "succeeded"
    assert await page.evaluate(status("bill")) is None
    await page.until("document.getElementById('live').innerText === 'live'")
    before = await page.evaluate(colour("call"))
    await page.screenshot(screens / "running.png")

    seen.set()
    await page.until(f"{status('call')} === 'succeeded'")
    await page.until(f"{colour('call')} !== '{before}'")
    await page.until(f"{status('pause')} === 'waiting'")
    await page.until("document.getElementById('details').innerText.includes('pause (delay) until')")
    await ended(page)
    assert await page.evaluate(status("bill")) == "succeeded"
    assert '"total": 42.5' in await page.text("#details")

    await page.click("[data-node=call]")
    await page.until("document.getElementById('details').innerText.includes('stock')")
    read = await page.text("#details")
    for part in ("Ask the warehouse", "http request", "succeeded", '"stock": 7', endpoint.url):
        assert part in read
    await page.screenshot(screens / "succeeded.png")
    assert (await page.evaluate("document.getElementById('temporal').href")).startswith(
        "http://127.0.0.1:8233/namespaces/default/workflows/automation-run%2F"
    )


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_a_running_node_stays_readable(
    page: Page, server: Server, automations: Person, serve: Serve, screens: Path, dark: bool
) -> None:
    await page.show(dark=dark)
    endpoint = await serve(never)
    call = node("call", "http_request", label="Ask the warehouse", url=endpoint.url)
    run_id = await automations.run(graph(call))
    await enter(page, server, run_id, automations.space)
    await page.until(f"{status('call')} === 'running'")
    surface, mixed, *fills = await page.evaluate(PULSE)
    assert surface != mixed
    bounds = [(min(pair), max(pair)) for pair in zip(surface, mixed, strict=True)]
    for fill in fills:
        for channel, (least, most) in zip(fill, bounds, strict=True):
            assert least - 1 <= channel <= most + 1, (fill, surface, mixed)
    await page.screenshot(screens / f"running-{'dark' if dark else 'light'}.png")


PULSE = """
(() => {
  const brush = document.createElement('canvas').getContext('2d');
  const channels = (colour) => {
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = colour;
    brush.fillRect(0, 0, 1, 1);
    return [...brush.getImageData(0, 0, 1, 1).data];
  };
  const sample = document.body.appendChild(document.createElement('i'));
  const shown = (colour) => {
    sample.style.color = colour;
    return channels(getComputedStyle(sample).color);
  };
  const box = document.querySelector('[data-node=call] .box');
  const pulse = box.getAnimations().find((one) => one.animationName === 'pulse');
  pulse.pause();
  const fills = [0, 100, 400, 700, 800, 1200, 1599].map((time) => {
    pulse.currentTime = time;
    return channels(getComputedStyle(box).fill);
  });
  pulse.currentTime = 400;
  return [
    shown('var(--surface)'),
    shown('color-mix(in srgb, var(--running) 10%, var(--surface))'),
    ...fills,
  ];
})()
"""
"""The surface, what it pulses to, and a running node's fill from time to time, as channels."""


@pytest.mark.long
async def test_no_script_sees_the_session_and_nothing_comes_from_elsewhere(
    page: Page, server: Server, automations: Person
) -> None:
    run_id = await automations.run(graph(node("only", "transform", output={})))
    await enter(page, server, run_id, automations.space)
    await ended(page)
    assert await page.evaluate("sessionStorage.length + localStorage.length") == 0
    assert await page.evaluate("document.cookie") == ""
    assert all(url.startswith((server.url, "data:")) for url in page.requests)


@pytest.mark.long
async def test_a_user_who_is_signed_out_meanwhile_is_led_to_sign_in(
    page: Page, server: Server, automations: Person, serve: Serve
) -> None:
    endpoint = await serve(never)
    run_id = await automations.run(graph(node("call", "http_request", url=endpoint.url)))
    await enter(page, server, run_id, automations.space)
    await page.until(f"{status('call')} === 'running'")
    async with automations.space.database.transaction() as work:
        await work.execute(delete(browser_session))
    await page.evaluate("document.body.dispatchEvent(new Event('changed'))")
    await page.until("location.pathname === '/sign-in'")
    # Its stream and its list race for the way there, and escape slashes differently.
    asked = await page.evaluate("new URLSearchParams(location.search).get('next')")
    assert asked == f"/runs/{run_id}"
    page.problems.clear()  # the browser notes the 401


@pytest.mark.long
async def test_a_panel_whose_answer_is_late_shows_the_end_all_the_same(
    page: Page, server: Server, automations: Person, serve: Serve
) -> None:
    ready = asyncio.Event()
    endpoint = await serve(once(ready, reply(200, {"stock": 7})))
    run_id = await automations.run(graph(node("call", "http_request", url=endpoint.url)))
    await enter(page, server, run_id, automations.space)
    await page.until(f"{status('call')} === 'running'")
    await hold_answers(page, "/node-runs")
    await page.click("[data-node=call]")
    await page.until("window.answers > 0")
    ready.set()
    await ended(page)
    await page.evaluate("window.release()")
    await page.until("document.getElementById('details').innerText.includes('stock')")


async def hold_answers(page: Page, of: str) -> None:
    """Keep answers of these paths from the page until `window.release()`; `answers` counts them."""
    await page.evaluate(
        "window.answers = 0; window.held = new Promise((done) => { window.release = done; });"
        " window.fetch = new Proxy(window.fetch, { async apply(real, self, given) {"
        " const answer = await real(...given);"
        f" if (given[0].includes('{of}')) {{ window.answers += 1; await window.held; }}"
        " return answer; } });"
    )


async def first_answer(page: Page, answer: str) -> None:
    """Give the page this in place of the first answer about a run."""
    await page.send(
        "Page.addScriptToEvaluateOnNewDocument",
        source="const real = window.fetch; let told = false; window.fetch = (...given) => {"
        " if (told || !String(given[0]).startsWith('/v1/runs/')) return real(...given);"
        f" told = true; return {answer}; }};",
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ("Promise.reject(new TypeError('offline'))", "is not responding"),
        ("Promise.resolve(new Response('{\"data\": '))", "was cut off"),
    ],
    ids=["away", "broken"],
)
async def test_an_answer_that_does_not_come_is_asked_for_again(
    page: Page, server: Server, automations: Person, answer: str, word: str
) -> None:
    run_id = await automations.run(graph(node("only", "transform", output={})))
    await first_answer(page, answer)
    await sign_in(page, server, automations.space)
    await page.open(f"{server.url}/runs/{run_id}")
    await page.until(f"document.getElementById('error').innerText.includes('{word}')")
    await page.until("document.querySelector('#graph .node') !== null")
    assert await page.evaluate("document.getElementById('error').hidden")


@pytest.mark.long
async def test_a_run_of_others_is_refused_in_words(
    page: Page, server: Server, automations: Person, foreign: Space
) -> None:
    run_id = await automations.run(graph(node("only", "transform", output={})))
    await sign_in(page, server, foreign)
    await page.open(f"{server.url}/runs/{run_id}")
    assert "Page not found" in await page.text("main")
    page.problems.clear()  # the browser notes the 404


@pytest.mark.long
async def test_a_failure_is_shown_with_its_attempts(
    page: Page, server: Server, automations: Person, serve: Serve, screens: Path
) -> None:
    endpoint = await serve(reply(503), reply(500), reply(404))
    retry = {"maxAttempts": 5, "initialDelaySeconds": 0.1, "backoffMultiplier": 1}
    run_id = await automations.run(
        graph(
            node("list", "transform", label="Orders of today", output={}),
            node("post", "http_request", label="Post them", url=endpoint.url, retry=retry),
            node("later", "delay", label="Remind in a week", seconds=80_000),
            node("book", "transform", label="Book them", output={}),
            edges=[("list", "post"), ("list", "later"), ("post", "book")],
        )
    )
    await enter(page, server, run_id, automations.space, "#post")
    await ended(page, "failed")
    assert "Post them" in await page.text("#error")
    assert await page.evaluate(status("post")) == "failed"
    assert await page.evaluate(status("later")) == "cancelled"
    await page.until("document.querySelectorAll('#details .rows tbody tr').length === 2")
    assert "Earlier attempts".upper() in (await page.text("#details")).upper()
    await page.screenshot(screens / "failed.png")


@pytest.mark.long
async def test_an_approval_says_who_may_decide(
    page: Page, server: Server, automations: Person
) -> None:
    config = {"role": "admin", "allowEditors": False}
    run_id = await automations.run(graph(node("ask", "approval", label="Pay?", **config)))
    await enter(page, server, run_id, automations.space, "#ask")
    await page.until("document.querySelector('#details').innerText.includes('members with the')")
    shown = (await page.text("#details")).lower()
    assert "members with the role admin" in shown
    assert "no" in shown.partition("editors can approve")[2].split()[:1]


@pytest.mark.long
async def test_a_loop_shows_how_far_it_is_and_each_of_its_iterations(
    page: Page, server: Server, automations: Person, serve: Serve, screens: Path
) -> None:
    seen = asyncio.Event()
    endpoint = await serve(once(seen, reply()))
    run_id = await automations.run(
        graph(
            node("each", "for_each", label="Each invoice", items=list(range(8)), parallelism=2),
            node("check", "condition", label="Odd?", expression="item % 2 == 1"),
            node("rest", "http_request", label="Be gentle", url=endpoint.url),
            node("sum", "transform", label="Sum up", output={}),
            edges=[("each", "check", "item"), ("check", "rest", "true"), ("each", "sum", "done")],
        )
    )
    await enter(page, server, run_id, automations.space, "#check")
    title = "document.querySelector('.frame-title').textContent"
    await page.until(f"/^Each invoice · [1-7]\\/8$/.test({title})")
    await page.screenshot(screens / "loop.png")
    seen.set()
    await ended(page)
    assert await page.evaluate(title) == "Each invoice · 8/8"
    await page.until("document.querySelectorAll('#details .rows tbody tr').length === 8")
    chosen = "document.querySelector('#details tr[aria-selected=true] button').innerText"

    async def is_chosen() -> bool:
        # The last news of the run may still move the rows.
        await page.click("#details .rows tbody tr:nth-child(4) button")
        return bool(await page.evaluate(chosen) == "each:3")

    await eventually(is_chosen, what="the choice of the fourth iteration")
    frame, inside, outside = await page.evaluate(
        "['.frame', '[data-node=rest] .box', '[data-node=sum] .box'].map((one) => {"
        " const { left, top, right, bottom } = document.querySelector(one).getBoundingClientRect();"
        " return { left, top, right, bottom }; })"
    )
    assert frame["left"] < inside["left"] < inside["right"] < frame["right"]
    assert frame["top"] < inside["top"] < inside["bottom"] < frame["bottom"]
    assert outside["top"] > frame["bottom"] or outside["left"] > frame["right"]


@pytest.mark.long
async def test_everything_is_reached_with_the_keyboard(
    page: Page, server: Server, automations: Person
) -> None:
    run_id = await automations.run(
        graph(
            node("one", "transform", output={"number": 1}),
            node("two", "transform", output={"number": 2}),
            edges=[("one", "two")],
        )
    )
    await enter(page, server, run_id, automations.space)
    await ended(page)
    focused = "document.activeElement.getAttribute('aria-label')"
    for _ in range(24):
        await page.press("Tab")
        if await page.evaluate(focused) == "one, transform, succeeded":
            break
    await page.press("ArrowRight")
    assert await page.evaluate(focused) == "two, transform, succeeded"
    await page.press("Enter")
    await page.until("document.getElementById('details').innerText.includes('\"number\": 2')")
    assert await page.evaluate("location.hash") == "#two"
    await page.press("Escape")
    await page.until("document.getElementById('details').innerText.includes('Overview')")
    # Colour is never all that tells a status.
    legend = await page.text("#legend")
    for word in ("running", "waiting", "succeeded", "failed", "skipped", "cancelled"):
        assert word in legend


@pytest.mark.long
async def test_texts_of_users_are_never_read_as_markup(
    page: Page, server: Server, automations: Person
) -> None:
    content = graph(node("only", "transform", label=HOSTILE, output={"text": HOSTILE}))
    run_id = await automations.run(content, {"text": HOSTILE}, label=HOSTILE)
    await enter(page, server, run_id, automations.space, "#only")
    await ended(page)
    await page.until("document.getElementById('details').innerText.includes('onerror')")
    assert await page.text("#label") == HOSTILE
    assert await page.evaluate("document.querySelectorAll('img').length") == 0


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_sixty_nodes_have_room(
    page: Page, server: Server, automations: Person, screens: Path, dark: bool
) -> None:
    await page.show(dark=dark)
    run_id = await automations.run(sixty())
    await enter(page, server, run_id, automations.space)
    await page.until(f"{status('n0x0')} === 'succeeded' && {status('n6x7')} === 'waiting'")
    clashes = await page.evaluate(
        "(() => { const boxes = [...document.querySelectorAll('.node .box')].map((one) =>"
        " one.getBoundingClientRect()); return boxes.flatMap((a, i) => boxes.filter((b, j) => i < j"
        " && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)).length;"
        " })()"
    )
    assert clashes == 0
    outside = await page.evaluate(
        "[...document.querySelectorAll('.node')].filter((one) =>"
        " [...one.querySelectorAll('text')].some((text) => text.getBoundingClientRect().right"
        " > one.querySelector('.box').getBoundingClientRect().right)).length"
    )
    assert outside == 0
    light = "rgb(246, 247, 249)"
    assert (await page.evaluate("getComputedStyle(document.body).backgroundColor") == light) != dark
    await page.screenshot(screens / f"sixty-{'dark' if dark else 'light'}.png")


def sixty() -> Json:
    """Seven lanes of eight nodes between a start, a fork of odd ones, a join and a report."""
    nodes = [node("start", "transform", output={})]
    edges: list[Any] = []
    for lane in range(7):
        before = "start"
        for place in range(8):
            name = f"n{lane}x{place}"
            config: Json = {"kind": "transform", "output": {}}
            if place == 3:
                config = {"kind": "condition", "expression": f"{lane} % 2 == 0"}
            elif place == 7:
                config = {"kind": "delay", "seconds": 600}
            kind = config.pop("kind")
            nodes.append(node(name, kind, label=f"Lane {lane + 1}, step {place + 1}", **config))
            edges.append((before, name, "true") if place == 4 else (before, name))
            before = name
        edges.append((before, "join"))
    nodes += [
        node("odd", "transform", label="WHATEVER IS ODD, AND THE REST OF IT", output={}),
        node("join", "join", label="All together", mode="all"),
        node("report", "transform", label="Report", output={}),
    ]
    edges += [(f"n{lane}x3", "odd", "false") for lane in (1, 3, 5)]
    return graph(*nodes, edges=[*edges, ("odd", "report"), ("join", "report")])
