"""States of earlier versions, kept in `temporal/states`, and the work that was open in them.

`python -m tests.support.kept_state NAME [COMMANDS]` keeps one: it starts `workspace` of COMMANDS, a
folder such as `.venv/bin` of an older checkout, begins the work, and backs it up as the runbook
says. The keys in it open nothing else.
"""

import asyncio
import json
import re
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from tests.support.checkout import BACK_UP, Checkout
from tests.support.engine import graph, node
from tests.support.fingerprints import ROOT
from tests.support.hooks import signed

Json = dict[str, Any]

STATES = ROOT / "temporal" / "states"
STORY = "story.json"
_MACHINE = re.compile(rb"(?:(?<=[0-9]@)|(?<=-system@))[\w.-]+|(?<=/)[\w./-]+(?=/\.state/)")
ROWS = [{"name": f"Order {place}", "topic": "bug", "votes": place} for place in range(1, 6)]
FIELDS: list[Json] = [
    {"label": "Name", "kind": "text"},
    {"label": "Topic", "kind": "select", "options": [{"name": "Bug", "color": "red"}]},
    {"label": "Votes", "kind": "number"},
    {"label": "Twice", "kind": "formula", "settings": {"expression": "record.votes * 2"}},
]
"""Of the database whose records are compared."""


async def begin(checkout: Checkout) -> Json:
    """Begin work of many kinds, and return the paths and values that lead back to it."""
    database = await checkout.call("/databases", {"label": "Orders", "fields": FIELDS})
    records = f"/v1/databases/{database['id']}/records"
    for row in ROWS:
        await checkout.call(records, {"title": row["name"], "data": row})
    done = node("done", "create_record", databaseId=database["id"], title="done")
    approval, event, delay, failing = await _publish_all(checkout, done)
    hook = await _publish(checkout, "Hook", graph(done), triggerConfig={"kind": "webhook"})
    ended, waiting = [await _run(checkout, approval) for _ in range(2)]
    runs = {"event": await _run(checkout, event), "delay": await _run(checkout, delay)}
    for run in (ended, waiting, *runs.values()):
        await checkout.wait_for(run, "waiting")
    await checkout.approve(ended)
    failed = await _run(checkout, failing)
    await checkout.wait_for(failed, "failed")
    link = await checkout.call(f"/items/{database['itemId']}/share-links", {})
    await checkout.put("/secrets/TOKEN", {"value": "kept-secret"})
    body = {"label": "Imported", "kind": "inline", "format": "csv", "text": "a,b\n1,2\n"}
    imported = await checkout.call("/imports", body)
    await checkout.wait_for(f"/imports/{imported['id']}", "succeeded")
    return {
        "records": records,
        "rows": await shown_records(checkout, records),
        "ended": ended,
        "waiting": waiting,
        "failed": failed,
        **runs,
        "hook": await checkout.call(hook),
        "link": link,
        "import": f"/imports/{imported['id']}",
    }


async def shown_records(checkout: Checkout, records: str) -> Json:
    """The values of the records by their titles."""
    shown = (await checkout.call(records))["records"]
    return {one["title"]: one["data"] for one in shown}


async def call_hook(checkout: Checkout, hook: Json) -> str:
    """Call the webhook of an automation with its old secret; the path of the run it started."""
    content = b'{"n": 1}'
    headers = {"Content-Type": "application/json", **signed(hook["webhookSecret"], content)}
    url = f"{checkout.connection['baseUrl']}{hook['webhookPath']}"
    answer = await checkout.http.post(url, content=content, headers=headers)
    assert answer.is_success, answer.text
    return f"/automations/{hook['id']}/runs/{answer.json()['data']['runId']}"


async def _publish_all(checkout: Checkout, done: Json) -> list[str]:
    """The paths of automations: three wait for a decision, an event and a time, one fails."""
    expression = {"type": "expression", "value": "1 / trigger.zero"}
    ask = node("ask", "approval", role="owner", allowSelf=True)
    hear = node("hear", "wait_event", eventKey="paid")
    later = node("later", "delay", seconds=60)
    broken = node("broken", "transform", output={"a": expression})
    return [
        await _publish(checkout, label, graph(*nodes, edges=edges))
        for label, nodes, edges in (
            ("Approval", (ask, done), [("ask", "done", "approved")]),
            ("Event", (hear, done), [("hear", "done")]),
            ("Delay", (later, done), [("later", "done")]),
            ("Failing", (node("first", "transform", output={}), broken), [("first", "broken")]),
        )
    ]


async def _publish(checkout: Checkout, label: str, content: Json, **fields: Any) -> str:
    body = {"label": label, "enabled": True, "graph": content, **fields}
    path = f"/automations/{(await checkout.call('/automations', body))['id']}"
    await checkout.call(f"{path}/publish", {})
    return path


async def _run(checkout: Checkout, automation: str) -> str:
    return f"{automation}/runs/{(await checkout.call(f'{automation}/run', {}))['id']}"


async def keep(name: str, commands: Path) -> None:
    """Keep the state of a platform that the commands of a folder start."""
    with tempfile.TemporaryDirectory() as directory:
        checkout = Checkout(Path(directory), commands)
        async with checkout.up("workspace up"):
            story = await begin(checkout)
            await checkout.sh(BACK_UP)
        await checkout.http.aclose()
        (checkout.directory / "backup" / STORY).write_text(json.dumps(story, indent=1))
        _hide_machine(checkout.directory / "backup" / "temporal.db")
        STATES.mkdir(exist_ok=True)
        with tarfile.open(STATES / f"{name}.tar.xz", "w:xz") as kept:
            kept.add(checkout.directory / "backup", "backup")


def _hide_machine(file: Path) -> None:
    """Overwrite the names of hosts and folders that workers and the server wrote into histories.

    Their lengths stay, on which the pages of SQLite and the messages in them depend.
    """
    content = _MACHINE.sub(lambda name: b"x" * len(name[0]), file.read_bytes())
    file.write_bytes(content)


def unpack(kept: Path, directory: Path) -> Json:
    """Put a kept state into a directory as `backup`, and return its story."""
    with tarfile.open(kept) as archive:
        archive.extractall(directory, filter="data")
    story: Json = json.loads((directory / "backup" / STORY).read_text())
    return story


if __name__ == "__main__":
    chosen = sys.argv[2] if len(sys.argv) > 2 else str(Path(sys.executable).parent)
    asyncio.run(keep(sys.argv[1], Path(chosen).absolute()))
