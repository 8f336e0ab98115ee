"""The answers that a webhook gives by itself."""

from typing import Literal

from models.automation.automation_runs.rules import RunStatus
from models.core.base import Id, Shape


class WebhookReceiptBody(Shape):
    """The result of a call: the run it started, or why it started none.

    With `duplicate` the run was started by an earlier call; it has no status once it is gone.
    """

    run_id: Id | None
    status: RunStatus | Literal["filtered", "skipped"] | None
    duplicate: bool
