"""The metadata of a run on the wire: how it is executed, and what it waits for (decisions C8)."""

from typing import Annotated, Any

from pydantic import WithJsonSchema

from models.core.base import JsonObject

_ID = {"type": "string", "format": "uuid"}
_MOMENT = {"type": "string", "format": "date-time"}
_TEXT = {"type": "string"}
_COUNT = {"type": "integer"}


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


RunMetadata = Annotated[
    JsonObject,
    WithJsonSchema(
        _object(
            "temporalWorkflowId chain waiting",
            temporalWorkflowId=_TEXT,
            failureRunId=_ID,
            parentRunId=_ID,
            chain={"type": "array", "items": _ID},
            concurrencyKey=_TEXT,
            admittedAt=_MOMENT,
            waitingForWorkerSince=_MOMENT,
            waiting={
                "type": "array",
                "items": _object(
                    "nodeId scopeKey reason",
                    nodeId=_TEXT,
                    scopeKey=_TEXT,
                    reason=_TEXT,
                    until=_MOMENT,
                ),
            },
            progress=_object("done total", done=_COUNT, total=_COUNT),
            trimmed={"type": "boolean"},
            temporal=_object("workflowId", workflowId=_TEXT, uiUrl=_TEXT),
            pageUrl=_TEXT,
        )
    ),
]
"""`progress` and `trimmed` are those of one run, and in no list."""
