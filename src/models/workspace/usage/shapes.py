"""Counters of a workspace on the wire (decisions C16)."""

from models.core.base import Moment, Nullable, Shape
from models.people.workspaces.rules import Plan


class Holdings(Shape):
    """What a workspace holds now, without what is in the trash."""

    members: int
    items: int
    databases: int
    records: int
    automations: int
    files: int
    file_bytes: int
    webhook_endpoints: int


class Activity(Shape):
    """What a workspace did since `since`, the begin of this month in UTC.

    Calls of the API are counted as far back as they are logged, and show up within a second.
    """

    since: Moment
    automation_runs: int
    api_calls: int
    webhook_deliveries: int


class Limits(Shape):
    """How much of each counter the plan allows; null is as much as one likes, as on every plan."""

    members: Nullable[int] = None
    items: Nullable[int] = None
    databases: Nullable[int] = None
    records: Nullable[int] = None
    automations: Nullable[int] = None
    files: Nullable[int] = None
    file_bytes: Nullable[int] = None
    webhook_endpoints: Nullable[int] = None
    automation_runs: Nullable[int] = None
    api_calls: Nullable[int] = None
    webhook_deliveries: Nullable[int] = None


class Usage(Shape):
    """The plan of a workspace and its counters. A plan is a name: none sets a limit."""

    plan: Plan
    limits: Limits
    holds: Holdings
    this_month: Activity
