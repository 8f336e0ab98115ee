"""Examples of every operation: calls that were recorded, and that a test makes again."""

import json
from pathlib import Path
from typing import Any

_RECORDED = Path(__file__).parent / "examples.json"
_JSON = "application/json"


def show_examples(document: dict[str, Any]) -> None:
    """Give every body, and the first answer that is a success, its example."""
    recorded = json.loads(_RECORDED.read_text())
    for methods in document["paths"].values():
        for operation in methods.values():
            call = recorded.get(operation["operationId"], {})
            success = operation["responses"][min(operation["responses"])]
            for name, place in (("body", operation.get("requestBody")), ("answer", success)):
                if name in call:
                    place["content"][_JSON]["example"] = call[name]
