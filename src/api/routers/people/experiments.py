"""Experiments: their administration, and what applications ask while they run."""

from api.kernel.routing import Access, Router, WholeLimit
from models.people import audience_segments
from models.people.experiments import assignments, commands, queries
from runtime.errors import ConflictError, NotFoundError

router = Router(tags=["experiments"])

ADMIN = "/v1/admin/experiments"
SEGMENTS = "/v1/admin/audience-segments"


@router.post(
    ADMIN,
    access=Access(platform_admin=True, idempotent=True),
    status_code=201,
    errors=[ConflictError],
    calls=commands.create_experiment,
)
async def create_experiment() -> None:
    """Create an experiment as draft or scheduled.

    It has 2 to 10 variants whose splits add up to 100. Its flag key and target must be unique among
    experiments that are not archived.
    """


@router.get(ADMIN, access=Access(platform_admin=True), calls=queries.list_experiments)
async def list_experiments() -> None:
    """List experiments with their statistics, newest first."""


@router.get(
    f"{ADMIN}/{{experimentId}}", access=Access(platform_admin=True), calls=queries.get_experiment
)
async def get_experiment() -> None:
    """Get an experiment with its statistics."""


@router.patch(
    f"{ADMIN}/{{experimentId}}",
    access=Access(platform_admin=True, idempotent=True),
    errors=[ConflictError],
    calls=commands.update_experiment,
)
async def update_experiment() -> None:
    """Change the status, variants, targeting or texts of an experiment.

    `draft` changes to `scheduled`, `scheduled` to `running`, and `running` to `paused` and back.
    Both change to `completed`, with a `winner` or an `endsAt`. All but running ones can be
    `archived`. A scheduled experiment starts at its `startedAt`, a running one ends at its
    `endsAt`.
    """


@router.get(SEGMENTS, access=Access(platform_admin=True), calls=audience_segments.list_segments)
async def list_audience_segments(limit: WholeLimit = 1000) -> None:
    """List the segments for flags and experiments."""


@router.post(
    SEGMENTS,
    access=Access(platform_admin=True, idempotent=True),
    status_code=201,
    errors=[ConflictError],
    calls=audience_segments.create_segment,
)
async def create_audience_segment() -> None:
    """Create a segment from a rule over facts of a caller and workspace."""


@router.post(
    "/v1/experiments/assign",
    access=Access(idempotent=True),
    errors=[NotFoundError],
    calls=assignments.assign,
)
async def assign_experiments() -> None:
    """Assign variants to the caller.

    The same unit always gets the same variant. Nothing is counted: record an `exposure` when
    showing a variant. A completed experiment assigns its winner to its whole audience.
    """


@router.post(
    "/v1/experiments/events",
    access=Access(idempotent=True),
    errors=[NotFoundError],
    calls=assignments.record_events,
)
async def record_experiment_events() -> None:
    """Record events of the caller: exposures, conversions and errors.

    `results` says for each event whether it was counted, or why not.
    """
