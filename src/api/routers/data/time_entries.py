"""Time entries: start, read, change, delete, add up."""

from api.kernel.request import QueryId
from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.core.access.rules import Level, Scope
from models.core.values import InputMoment
from models.data.time_entries import commands, queries, rules, shapes
from runtime.errors import ConflictError, ConflictingMutationError

router = Router(tags=["time entries"])

ENTRIES = "/v1/workspaces/{workspaceId}/time-entries"
ENTRY = f"{ENTRIES}/{{entryId}}"

READ_ALL = Access(scopes=[Scope.TIME_ENTRIES_READ])
START = Access(scopes=[Scope.TIME_ENTRIES_WRITE], idempotent=True)
READ = Access(scopes=[Scope.TIME_ENTRIES_READ], resource="entry", level=Level.VIEW)
WRITE = Access(
    scopes=[Scope.TIME_ENTRIES_WRITE], resource="entry", level=Level.VIEW, idempotent=True
)


@router.post(
    ENTRIES,
    access=START,
    status_code=201,
    errors=[ConflictError, ConflictingMutationError],
    calls=commands.start_entry,
)
async def start_time_entry() -> None:
    """Start a timer, or enter past time.

    One entry of a user runs in a workspace: a new one completes it, unless `onActive` is `reject`.
    A countdown or pomodoro ends by itself at `dueAt`. Time that is entered may not overlap other
    time of the user. The same `clientMutationId` gives the same entry.
    """


@router.get(ENTRIES, access=READ_ALL)
async def list_time_entries(  # noqa: PLR0917  # the filters of a list
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    user_id: QueryId | None = None,
    target_kind: rules.TargetKind | None = None,
    target_id: QueryId | None = None,
    database_id: QueryId | None = None,
    field_id: QueryId | None = None,
    status: rules.EntryStatus | None = None,
    since: InputMoment | None = None,
    until: InputMoment | None = None,
) -> Data[shapes.TimeEntryList]:
    """List time entries by their start, newest first: one's own, and others' on visible targets.

    `since` and `until` bound when the entries started; the second is not included.
    """
    wanted = queries.EntryFilter(
        user_id, target_kind, target_id, database_id, field_id, status, since, until
    )
    page = request.page("time_entries", limit, cursor, wanted)
    return Data(await queries.list_entries(request.work, request.actor, page, wanted))


@router.get(f"{ENTRIES}/current", access=READ_ALL, calls=queries.current_entry)
async def get_current_time_entry() -> None:
    """Get one's own running entry, else the one paused last; `entry` is absent without either."""


@router.get(f"{ENTRIES}/summary", access=READ_ALL)
async def summarize_time_entries(  # noqa: PLR0917  # the filters of a list
    request: ApiRequest,
    group_by: shapes.SummaryGroup = shapes.SummaryGroup.DAY,
    first_day: str | None = None,
    last_day: str | None = None,
    timezone: str = "UTC",
    limit: Limit = 30,
    cursor: Cursor = None,
    user_id: QueryId | None = None,
    target_kind: rules.TargetKind | None = None,
    target_id: QueryId | None = None,
    database_id: QueryId | None = None,
    field_id: QueryId | None = None,
) -> Data[shapes.TimeEntrySummary]:
    """Add up time by day, user, target or timer field.

    `firstDay` and `lastDay` are days of `timezone`, both included; without them the
    last 30 days. A day is as long as its clock makes it. Time of no field is left out where it is
    added up by field.
    """
    zone = rules.read_zone(timezone)
    first, last = rules.read_days(first_day, last_day, request.work.now, zone)
    wanted = queries.EntryFilter(user_id, target_kind, target_id, database_id, field_id)
    page = request.page("time_summary", limit, cursor, group_by, first, last, timezone, wanted)
    asked = queries.Asked(group_by, zone, first, last)
    return Data(await queries.summarize(request.work, request.actor, page, wanted, asked))


@router.get(ENTRY, access=READ, calls=queries.get_entry)
async def get_time_entry() -> None:
    """Get a time entry."""


@router.patch(ENTRY, access=WRITE, errors=[ConflictError], calls=commands.update_entry)
async def update_time_entry() -> None:
    """Pause, resume, complete or discard a time entry, or correct it.

    The entries of others need the scope time_entries:manage. With the header
    `If-Match: <updatedAt>`, or `expectedUpdatedAt`, an entry that was changed since is left
    unchanged. An entry that has ended stays completed or discarded.
    """


@router.delete(ENTRY, access=WRITE, errors=[ConflictError], calls=commands.delete_entry)
async def delete_time_entry() -> None:
    """Delete a time entry for good. The entries of others need the scope time_entries:manage."""
