"""A shop to look at in the console: orders, automations that ran, and a refund that waits."""

import random
from datetime import date, timedelta

from cli.api_client import Json
from cli.demo.client import WorkspaceClient

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
        {"id": "pack", "kind": "delay", "label": "Pack it", "config": {"seconds": 1}},
        {
            "id": "sorry",
            "kind": "stop",
            "label": "Nothing to send",
            "config": {"result": "failed", "message": "The shelf is empty."},
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
                    "value": "{{ trigger.customer }} sent it back and asks for 42 €.",
                },
            },
        },
        {
            "id": "pay",
            "kind": "transform",
            "label": "Pay it back",
            "config": {"output": {"paid": True}},
        },
    ],
    "edges": [{"from": "approve", "to": "pay", "outcome": "approved"}],
}


async def open_shop(client: WorkspaceClient, today: date) -> None:
    """Fill a workspace with the shop, whose refund waits for whoever looks."""
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
