"""Data that Temporal keeps of an execution: search attributes, fairness, payloads, failures."""

import sysconfig
import traceback
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.common import (
    Priority,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
)
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverter,
    PayloadConverter,
)
from temporalio.exceptions import ApplicationError, FailureError
from typing_extensions import override

from runtime.errors import PlatformError
from runtime.temporal.workflow_kinds import SearchAttribute, WorkflowKind


def search_attributes(
    workspace_id: str, request: Mapping[str, Any], workflow_kind: WorkflowKind
) -> TypedSearchAttributes:
    """The attributes of an execution that `request` starts; what it does not name is left out."""
    values = {
        SearchAttribute.WORKSPACE_ID: workspace_id,
        SearchAttribute.RESOURCE_ID: request.get("resourceId"),
        SearchAttribute.RUN_KIND: workflow_kind.value,
        SearchAttribute.RUN_SOURCE: request.get("source"),
    }
    return TypedSearchAttributes(
        [
            SearchAttributePair(SearchAttributeKey.for_keyword(name), value)
            for name, value in values.items()
            if value is not None
        ]
    )


FAIRNESS_HEADER = "fairness-key"
"""The header of an activity that may be handed over without its priority."""


def fairness(workspace_id: uuid.UUID, workflow_kind: WorkflowKind, weight: int = 1) -> Priority:
    """The fairness of an execution and of all its tasks; every one has the same priority.

    A queue hands out tasks of the lowest priority key as long as there are any, so keys that differ
    would let one class hold back another for ever.
    """
    return Priority(fairness_key=f"{workspace_id}/{workflow_kind}", fairness_weight=float(weight))


def fairness_header_of(priority: Priority) -> Mapping[str, Payload]:
    """The header of an activity whose workflow has this priority."""
    return {FAIRNESS_HEADER: Payload(data=(priority.fairness_key or "").encode())}


def workspace_of(info: activity.Info, headers: Mapping[str, Payload]) -> str:
    """The workspace for which an activity is executed; empty where there is none."""
    key = (
        headers[FAIRNESS_HEADER].data.decode()
        if FAIRNESS_HEADER in headers
        else info.priority.fairness_key
    )
    return (key or "").partition("/")[0]


def execution_of(info: activity.Info) -> str:
    """The id of the execution that an activity is a part of: itself, where no workflow calls it."""
    return info.workflow_id or info.activity_id


_CONVERTERS = tuple(PydanticPayloadConverter().converters.values())


class SharedPayloadConverter(CompositePayloadConverter):
    """The converter of the SDK's pydantic support, whose adapters of types are built once.

    The SDK makes a converter for every workflow it loads. One that began with an empty memory would
    build the adapters of all our contracts again for every run.
    """

    def __init__(self) -> None:
        super().__init__(*_CONVERTERS)


MESSAGE_LIMIT = 500
STACK_LIMIT = 2_000
_FOREIGN = tuple(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib"))


class BriefFailureConverter(DefaultFailureConverter):
    """Keeps the message of our failures, and of any other exception its type and place.

    The text of an unexpected exception may quote rows and requests, and be longer than a history
    takes; it is in the log of the process. Of stack traces only our own frames are kept
    (architecture.md#no-user-data).
    """

    @override
    def to_failure(
        self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure
    ) -> None:
        if isinstance(exception, FailureError):
            super().to_failure(exception, payload_converter, failure)
            failure.message = failure.message[:MESSAGE_LIMIT]
            failure.stack_trace = ""
            return
        converted = ApplicationError(
            message_of_failure(exception)[:MESSAGE_LIMIT], type=type(exception).__name__
        )
        super().to_failure(converted, payload_converter, failure)
        frames = traceback.format_list(_own_frames(exception.__traceback__))
        failure.stack_trace = "".join(frames)[-STACK_LIMIT:]


def message_of_failure(error: BaseException) -> str:
    """The code or the class, what PostgreSQL calls it, and the place in our code."""
    name = error.code if isinstance(error, PlatformError) else type(error).__name__
    origin = getattr(error, "orig", None) or error
    facts = [getattr(origin, "sqlstate", None)]
    facts.append(getattr(getattr(origin, "diag", None), "constraint_name", None))
    if origin is not error:
        facts.insert(0, type(origin).__name__)
    shown = ", ".join(str(fact) for fact in facts if fact)
    summary = f"{name} ({shown})" if shown else name
    frames = _own_frames(error.__traceback__)
    return f"{summary} at {frames[-1].name}, line {frames[-1].lineno}" if frames else summary


def _own_frames(stack: TracebackType | None) -> list[traceback.FrameSummary]:
    frames = traceback.extract_tb(stack)
    return [frame for frame in frames if not frame.filename.startswith(_FOREIGN)]


data_converter = DataConverter(
    payload_converter_class=SharedPayloadConverter,
    failure_converter_class=BriefFailureConverter,
)
