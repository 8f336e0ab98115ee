"""The metadata of runs and of their nodes on the wire (decisions C8).

It says how they are executed, and what they wait for.
"""

from typing import Annotated

from pydantic import WithJsonSchema

from models.core.base import JsonObject
from models.core.documented import COUNT, FLAG, ID, MOMENT, TEMPORAL, TEXT, keys, listed
from models.core.pauses.shapes import WAITING_FOR

_WAITING = keys("nodeId scopeKey reason", nodeId=TEXT, scopeKey=TEXT, reason=TEXT, until=MOMENT)
_QUESTION = keys("key label", key=TEXT, label=TEXT, kind=TEXT, required=FLAG, options=listed(TEXT))

SCHEDULE_NOTE = "scheduleNote"
"""Among the options and in the metadata of a run: why its due time differs from the expression."""

RunMetadata = Annotated[
    JsonObject,
    WithJsonSchema(
        keys(
            "temporalWorkflowId chain waiting",
            temporalWorkflowId=TEXT,
            failureRunId=ID,
            operationId=ID,
            scheduleNote=TEXT,
            parentRunId=ID,
            chain=listed(ID),
            concurrencyKey=TEXT,
            admittedAt=MOMENT,
            waitingForWorkerSince=MOMENT,
            waiting=listed(_WAITING),
            waitingFor=WAITING_FOR,
            progress=keys("done total", done=COUNT, total=COUNT),
            trimmed=FLAG,
            temporal=TEMPORAL,
            pageUrl=TEXT,
        )
    ),
]
"""`progress` and `trimmed` are given of a single run, and in no list."""

NodeRunMetadata = Annotated[
    JsonObject,
    WithJsonSchema(
        keys(
            "",
            reused=FLAG,
            errorCode=TEXT,
            lastError=TEXT,
            wait=keys(
                "",
                eventKey=TEXT,
                byUrl=FLAG,
                resumeUrl=TEXT,
                assignees=listed(ID),
                role=TEXT,
                form=listed(_QUESTION),
                required=COUNT,
                allowEditors=FLAG,
                decisions=listed(
                    keys("decision at", userId=ID, decision=TEXT, comment=TEXT, at=MOMENT)
                ),
                resolution=TEXT,
            ),
        )
    ),
]
"""`wait` is that of a node that waits, or waited, for an event or for people."""
