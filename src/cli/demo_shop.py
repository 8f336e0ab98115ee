"""A shop to look at in the console, made through the API by a client of one workspace."""

import asyncio
import random
import time
from collections.abc import Sequence
from datetime import date, timedelta

from cli.api_client import ApiClient, Json
from cli.console import StartError

ORDERS = 120
RUNS = 12
"""Runs that ended; a fourth of them failed."""
_NAMES = (
    "Ada Lovelace",
    "Grace Hopper",
    "Alan Turing",
    "Edsger Dijkstra",
    "Barbara Liskov",
    "Donald Knuth",
    "Radia Perlman",
    "Tony Hoare",
)
_STATES = ("new", "packed", "sent", "returned")
_TAGS = ("gift", "express", "abroad")

FIELDS: list[Json] = [
    {"label": "Customer", "kind": "text"},
    {
        "label": "Total",
        "kind": "currency",
        "settings": {"currencyCode": "EUR", "precision": 2},
    },
    {
        "label": "State",
        "kind": "status",
        "options": [
            {"name": "New", "color": "blue"},
            {"name": "Packed", "color": "orange"},
            {"name": "Sent", "color": "green"},
            {"name": "Returned", "color": "red"},
        ],
    },
    {"label": "Paid", "kind": "checkbox"},
    {"label": "Ordered", "kind": "date"},
    {
        "label": "Tags",
        "kind": "multi_select",
        "options": [
            {"name": "Gift", "color": "pink"},
            {"name": "Express", "color": "purple"},
            {"name": "Abroad", "color": "teal"},
        ],
    },
    {"label": "Mail", "kind": "email"},
    {"label": "Rating", "kind": "rating"},
]

VIEWS: list[Json] = [
    {"label": "By state", "kind": "board", "manifest": {"stackFieldKey": "state"}},
    {"label": "Calendar", "kind": "calendar", "manifest": {"dateFieldKey": "ordered"}},
]

INVOICE: Json = {
    "nodes": [
        {
            "id": "prepare",
            "kind": "transform",
            "label": "Prepare the invoice",
            "config": {"output": {"total": {"type": "trigger", "value": "total"}}},
        },
        {
            "id": "stock",
            "kind": "condition",
            "label": "In stock?",
            "config": {"expression": "trigger.stock > 0"},
        },
        {"id": "pack", "kind": "delay", "label": "Pack the order", "config": {"seconds": 1}},
        {
            "id": "sorry",
            "kind": "stop",
            "label": "Nothing to send",
            "config": {"result": "failed", "message": "Out of stock."},
        },
    ],
    "edges": [
        {"from": "prepare", "to": "stock"},
        {"from": "stock", "to": "pack", "outcome": "true"},
        {"from": "stock", "to": "sorry", "outcome": "false"},
    ],
}

REFUND: Json = {
    "nodes": [
        {
            "id": "approve",
            "kind": "approval",
            "label": "Approve the refund",
            "config": {
                "role": "owner",
                "allowSelf": True,
                "title": "Refund the order?",
                "message": {
                    "type": "template",
                    "value": "{{ trigger.customer }} returned the order and requests 42 €.",
                },
            },
        },
        {
            "id": "pay",
            "kind": "transform",
            "label": "Refund payment",
            "config": {"output": {"paid": True}},
        },
    ],
    "edges": [{"from": "approve", "to": "pay", "outcome": "approved"}],
}


class WorkspaceClient(ApiClient):
    async def create_database(
        self, label: str, fields: Sequence[Json], views: Sequence[Json] = ()
    ) -> str:
        """A new database; its id."""
        body = {"label": label, "fields": list(fields), "views": list(views)}
        database = await self.call("POST", f"{self.workspace}/databases", json=body)
        return str(database["id"] if "id" in database else database["database"]["id"])

    async def create_records(self, database_id: str, rows: Sequence[Json]) -> None:
        """Create one record per row, in batches."""
        for first in range(0, len(rows), _BATCH):
            operations = [
                {"op": "create", "data": {"title": row.get("name"), **row}}
                for row in rows[first : first + _BATCH]
            ]
            path = f"/v1/databases/{database_id}/records/batch"
            await self.call("POST", path, json={"operations": operations})

    async def records(self, database_id: str) -> list[Json]:
        """The first records of a database."""
        answer = await self.call("GET", f"/v1/databases/{database_id}/records")
        return list(answer["records"])

    async def publish(self, label: str, graph: Json) -> str:
        """A published, enabled automation; its id."""
        body = {
            "label": label,
            "enabled": True,
            "triggerConfig": {"kind": "manual"},
            "graph": graph,
        }
        created = await self.call("POST", f"{self.workspace}/automations", json=body)
        automation_id = str(created["id"])
        await self.call("POST", f"{self.workspace}/automations/{automation_id}/publish", json={})
        return automation_id

    async def run(self, automation_id: str, payload: Json | None = None) -> str:
        """Start a run; its id."""
        path = f"{self.workspace}/automations/{automation_id}/run"
        body = {} if payload is None else {"triggerPayload": payload}
        return str((await self.call("POST", path, json=body))["id"])

    async def finished(self, automation_id: str, run_id: str, seconds: float) -> Json:
        """The run with its node runs once it has ended. Raises StartError when that is late."""
        path = f"{self.workspace}/automations/{automation_id}/runs/{run_id}"
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            run: Json = await self.call("GET", path)
            if run["status"] not in _OPEN:
                return run
            await asyncio.sleep(0.5)
        raise StartError(f"The run did not end within {seconds:.0f} s.")


async def open_shop(client: WorkspaceClient, today: date) -> None:
    """Fill a workspace with the shop, whose refund waits for an approval."""
    orders_id = await client.create_database("Orders", FIELDS, VIEWS)
    await client.create_records(orders_id, orders(today))
    invoice = await client.publish("Send the invoice", INVOICE)
    for number in range(RUNS):
        await client.run(invoice, {"total": 20 * number, "stock": number % 4})
    refund = await client.publish("Refund a customer", REFUND)
    await client.run(refund, {"customer": _NAMES[0], "total": 42})


def orders(today: date) -> list[Json]:
    """The same orders each time, of the four weeks before `today`."""
    dice = random.Random(4)  # noqa: S311  # for looks alone
    rows: list[Json] = []
    for number in range(ORDERS):
        customer = dice.choice(_NAMES)
        rows.append(
            {
                "title": f"Order {1000 + number}",
                "customer": customer,
                "total": round(dice.uniform(5, 2_400), 2),
                "state": dice.choice(_STATES),
                "paid": dice.random() < 0.6,
                "ordered": (today - timedelta(days=dice.randrange(28))).isoformat(),
                "tags": [tag for tag in _TAGS if dice.random() < 0.25],
                "mail": f"{customer.split()[1].lower()}@example.com",
                "rating": dice.randint(1, 5),
            }
        )
    return rows


_BATCH = 500
"""Operations of one batch."""
_OPEN = {"queued", "running", "waiting"}
