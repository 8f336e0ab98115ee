"""Counters of a workspace on the wire (decisions C16)."""

from models.core.base import Moment, Shape
from models.people.workspaces.rules import Plan


class Holdings(Shape):
    """The things a workspace holds now, without the trash."""

    members: int
    items: int
    databases: int
    records: int
    automations: int
    files: int
    file_bytes: int
    webhook_endpoints: int


class Activity(Shape):
    """The activity of a workspace since `since`, the begin of this month in UTC.

    Calls of the API are counted as far back as they are logged, and show up within a second.
    """

    since: Moment
    automation_runs: int
    api_calls: int
    webhook_deliveries: int


class Usage(Shape):
    """The plan of a workspace and its counters. A plan is a name: none sets a limit."""

    plan: Plan
    holds: Holdings
    this_month: Activity
