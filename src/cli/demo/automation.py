"""The automation of the demo: over real rows, through an unreliable service, to new records."""

from collections.abc import Iterable

from cli.api_client import Json

UPDATED = 3


def graph(cars_id: str, summaries_id: str, endpoint: str) -> Json:
    """Query, condition, an HTTP call with retries, updates side by side, a wait, a summary."""
    updates = [_update(cars_id, index) for index in range(UPDATED)]
    nodes: list[Json] = [
        {
            "id": "strongest",
            "kind": "query_records",
            "label": "Find the strongest cars",
            "config": {
                "databaseId": cars_id,
                "query": {
                    "filter": {"field": "horsepower", "op": "gte", "value": 200},
                    "sorts": [{"field": "horsepower", "direction": "desc"}],
                    "limit": 20,
                },
            },
        },
        {
            "id": "enough",
            "kind": "condition",
            "label": f"At least {UPDATED}?",
            "config": {"expression": f"nodes.strongest.count >= {UPDATED}"},
        },
        {
            "id": "rate",
            "kind": "http_request",
            "label": "Ask for the tax rate",
            "config": {
                "method": "POST",
                "url": endpoint,
                "body": {"cars": {"type": "node", "value": "strongest.count"}},
            },
            "retry": {
                "maxAttempts": 5,
                "initialDelaySeconds": 2,
                "backoffMultiplier": 1.5,
                "maxDelaySeconds": 10,
            },
            "timeoutSeconds": 10,
        },
        *updates,
        {
            "id": "settle",
            "kind": "delay",
            "label": "Wait two seconds",
            "config": {"seconds": 2},
        },
        {
            "id": "summary",
            "kind": "create_record",
            "label": "Write the summary",
            "config": {
                "databaseId": summaries_id,
                "title": "Horsepower tax",
                "data": {
                    "cars": {"type": "node", "value": "strongest.count"},
                    "rate": {"type": "node", "value": "rate.body.rate"},
                    "note": {
                        "type": "template",
                        "value": "The strongest is {{ nodes.strongest.records[0].data.name }}.",
                    },
                },
            },
        },
    ]
    return {"nodes": nodes, "edges": _edges(update["id"] for update in updates)}


def _update(cars_id: str, index: int) -> Json:
    car = f"nodes.strongest.records[{index}]"
    return {
        "id": f"tax{index + 1}",
        "kind": "update_record",
        "label": f"Tax number {index + 1}",
        "config": {
            "databaseId": cars_id,
            "recordId": {"type": "expression", "value": f"{car}.id"},
            "data": {
                "tax": {
                    "type": "expression",
                    "value": f"double({car}.data.horsepower) * double(nodes.rate.body.rate)",
                }
            },
        },
    }


def _edges(updates: Iterable[str]) -> list[Json]:
    edges: list[Json] = [
        {"from": "strongest", "to": "enough"},
        {"from": "enough", "to": "rate", "outcome": "true"},
    ]
    for update in updates:
        edges += [{"from": "rate", "to": update}, {"from": update, "to": "settle"}]
    return [*edges, {"from": "settle", "to": "summary"}]
