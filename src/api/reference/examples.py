"""Examples of every operation: calls that were recorded, and that a test makes again."""

import json
from pathlib import Path
from typing import Any

_RECORDED = Path(__file__).parent / "examples.json"
_JSON = "application/json"


def show_examples(document: dict[str, Any]) -> None:
    """Give every body its example, and every success that has a schema."""
    recorded = json.loads(_RECORDED.read_text())
    for methods in document["paths"].values():
        for operation in methods.values():
            call = recorded.get(operation["operationId"], {})
            answers = [one for status, one in operation["responses"].items() if status < "300"]
            _show(call, "body", [operation.get("requestBody", {})])
            _show(call, "answer", answers)


def _show(call: dict[str, Any], name: str, places: list[Any]) -> None:
    for place in places:
        shown = place.get("content", {}).get(_JSON, {})
        if name in call and "schema" in shown:
            shown["example"] = call[name]
