"""Experiments: their administration, and what applications ask while they run."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router, WholeLimit
from models.people import audience_segments
from models.people.audience_segments import (
    AudienceSegmentBody,
    AudienceSegmentList,
    CreateAudienceSegment,
)
from models.people.experiments import assignments, commands, queries
from models.people.experiments.shapes import (
    AssignExperiments,
    Assignments,
    CreateExperiment,
    EventsRecorded,
    ExperimentBody,
    ExperimentList,
    RecordEvents,
    UpdateExperiment,
)
from runtime.errors import ConflictError, NotFoundError

router = Router(tags=["experiments"])

ADMIN = "/v1/admin/experiments"
SEGMENTS = "/v1/admin/audience-segments"


@router.post(
    ADMIN,
    access=Access(platform_admin=True, idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def create_experiment(request: ApiRequest, body: CreateExperiment) -> Data[ExperimentBody]:
    """Create an experiment as draft or scheduled.

    It has 2 to 10 variants whose splits add up to 100. Its flag key and target must be unique among
    experiments that are not archived.
    """
    return Data(
        await commands.create_experiment(request.work, request.principal, request.new_id, body)
    )


@router.get(ADMIN, access=Access(platform_admin=True))
async def list_experiments(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[ExperimentList]:
    """List experiments with their statistics, newest first."""
    page = request.page("experiments", limit, cursor)
    return Data(await queries.list_experiments(request.work, page))


@router.get(f"{ADMIN}/{{experimentId}}", access=Access(platform_admin=True))
async def get_experiment(request: ApiRequest) -> Data[ExperimentBody]:
    """Get an experiment with its statistics."""
    return Data(await queries.get_experiment(request.work, request.ids["experimentId"]))


@router.patch(
    f"{ADMIN}/{{experimentId}}",
    access=Access(platform_admin=True, idempotent=True),
    errors=[ConflictError],
)
async def update_experiment(request: ApiRequest, body: UpdateExperiment) -> Data[ExperimentBody]:
    """Change the status, variants, targeting or texts of an experiment.

    `draft` changes to `scheduled`, `scheduled` to `running`, and `running` to `paused` and back.
    Both change to `completed`, with a `winner` or an `endsAt`. All but running ones can be
    `archived`. A scheduled experiment starts at its `startedAt`, a running one ends at its
    `endsAt`.
    """
    found = request.ids["experimentId"]
    return Data(await commands.update_experiment(request.work, found, body))


@router.get(SEGMENTS, access=Access(platform_admin=True))
async def list_audience_segments(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[AudienceSegmentList]:
    """List the segments for flags and experiments."""
    page = request.page("audience segments", limit, cursor)
    return Data(await audience_segments.list_segments(request.work, page))


@router.post(
    SEGMENTS,
    access=Access(platform_admin=True, idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def create_audience_segment(
    request: ApiRequest, body: CreateAudienceSegment
) -> Data[AudienceSegmentBody]:
    """Create a segment from a rule over facts of a caller and workspace."""
    return Data(await audience_segments.create_segment(request.work, request.principal, body))


@router.post("/v1/experiments/assign", access=Access(idempotent=True), errors=[NotFoundError])
async def assign_experiments(request: ApiRequest, body: AssignExperiments) -> Data[Assignments]:
    """Assign variants to the caller.

    The same unit always gets the same variant. Nothing is counted: record an `exposure` when
    showing a variant. A completed experiment assigns its winner to its whole audience.
    """
    return Data(await assignments.assign(request.work, request.principal, request.roles, body))


@router.post("/v1/experiments/events", access=Access(idempotent=True), errors=[NotFoundError])
async def record_experiment_events(request: ApiRequest, body: RecordEvents) -> Data[EventsRecorded]:
    """Record events of the caller: exposures, conversions and errors.

    `results` says for each event whether it was counted, or why not.
    """
    return Data(
        await assignments.record_events(request.work, request.principal, request.roles, body)
    )
