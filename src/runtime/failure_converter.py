"""Failures as Temporal keeps and shows them: short, with our code or the kind of the error (I8).

The text of an unexpected exception may quote rows and requests, and be longer than a history takes;
it stands in the log of the process. Of stack traces only our own frames are kept.
"""

import sysconfig
import traceback
from types import TracebackType

from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, PayloadConverter
from temporalio.exceptions import ApplicationError, FailureError
from typing_extensions import override

from runtime.errors import PlatformError

MESSAGE_LIMIT = 500
STACK_LIMIT = 2_000
_FOREIGN = tuple(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib"))


class BriefFailureConverter(DefaultFailureConverter):
    """Keeps what we say of a failure, and of any other exception what it is and where it arose."""

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
            message_of(exception)[:MESSAGE_LIMIT], type=type(exception).__name__
        )
        super().to_failure(converted, payload_converter, failure)
        frames = traceback.format_list(_own_frames(exception.__traceback__))
        failure.stack_trace = "".join(frames)[-STACK_LIMIT:]


def message_of(error: BaseException) -> str:
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
