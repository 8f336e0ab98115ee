"""Pages for administrators of the platform: its state, experiments, release notices."""

from collections.abc import Mapping

from starlette.responses import Response

from api.console.controls import Offers
from api.console.entered import BLANK, Entered, Fields, read_as, redisplays
from api.console.resource_pages import Column, Resource
from api.console.routing import page_router
from api.console.workspace import settings
from api.kernel.routing import ApiRequest, Cursor
from api.routers import service
from api.routers.people import members as api
from api.routers.people import workspaces
from models.core.pagination import DEFAULT_LIMIT, WHOLE_LIMIT
from models.people import release_notices
from models.people.audience_segments import list_segments
from models.people.experiments import commands, queries
from models.people.experiments.rules import TRANSITIONS, ExperimentStatus
from models.people.experiments.shapes import UpdateExperiment
from models.people.release_notices import PublishRelease, ReleaseChannel
from models.workspace.system import system_state

router = page_router()


@router.get(f"{settings.SETTINGS}/system", access=settings.administers())
async def get_system_page(request: ApiRequest) -> Response:
    """Look at what waits, for how long, and which workers are there."""
    state = await system_state(request.work)
    return await settings.settings_page(
        request, "settings_system.html", "system", service.get_system_state, state=state
    )


async def _audiences(request: ApiRequest) -> Offers:
    listed = await list_segments(request.work, request.page("audience", WHOLE_LIMIT, None))
    return {"audience": [(one.key, one.label) for one in listed.segments]}


EXPERIMENTS = f"{settings.SETTINGS}/experiments"
EXPERIMENT = f"{EXPERIMENTS}/{{experimentId}}"

SIGNS: Mapping[ExperimentStatus, str] = {
    ExperimentStatus.DRAFT: "skipped",
    ExperimentStatus.SCHEDULED: "queued",
    ExperimentStatus.RUNNING: "running",
    ExperimentStatus.PAUSED: "waiting",
    ExperimentStatus.COMPLETED: "succeeded",
    ExperimentStatus.ARCHIVED: "cancelled",
}
"""The sign by which each state is shown."""


@router.get(EXPERIMENTS, access=settings.administers())
async def get_experiments(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through experiments and their figures."""
    wanted = request.page("experiments", DEFAULT_LIMIT, cursor)
    listed = await queries.list_experiments(request.work, wanted)
    return await settings.settings_page(
        request,
        "settings_experiments.html",
        "experiments",
        api.list_experiments,
        api.create_experiment,
        experiments=listed.experiments,
        signs=SIGNS,
        cursor=cursor,
        next=listed.cursor,
    )


@router.get(EXPERIMENT, access=settings.administers())
async def get_experiment_page(
    request: ApiRequest, notice: settings.Notice | None = None
) -> Response:
    """Look at the results of an experiment."""
    return await _experiment_page(request, BLANK, notice=notice)


async def _experiment_page(
    request: ApiRequest, entered: Entered, notice: settings.Notice | None = None
) -> Response:
    experiment = await queries.get_experiment(request.work, request.ids["experimentId"])
    return await settings.settings_page(
        request,
        "settings_experiment.html",
        "experiments",
        api.get_experiment,
        api.update_experiment,
        notice=notice,
        entered=entered,
        experiment=experiment,
        signs=SIGNS,
        following=[one for one in ExperimentStatus if one in TRANSITIONS[experiment.status]],
    )


@router.post(f"{EXPERIMENT}/status", access=settings.administers(form=True))
@redisplays(_experiment_page)
async def change_experiment_status(request: ApiRequest, body: Fields) -> Response:
    """Bring an experiment into another state."""
    experiment_id = request.ids["experimentId"]

    update = read_as(UpdateExperiment, body.texts)
    await commands.update_experiment(request.work, experiment_id, update)
    return settings.led_to(request, "experiments", experiment_id, notice=settings.Notice.SAVED)


_EXPERIMENTS = Resource(
    noun="experiment",
    at=EXPERIMENTS,
    parameter="experimentId",
    label="name",
    columns=(),
    sentence="",
    empty="",
    listing=api.list_experiments,
    reading=api.get_experiment,
    creating=api.create_experiment,
    updating=api.update_experiment,
    without=(
        *("status", "winner", "exposures", "conversionRate", "errorRate"),
        *("conversionInterval", "errorInterval"),
    ),
    words={
        "allocation": ("Allocation (%)", "The share of the audience that takes part."),
        "assignmentUnit": ("Assign by", "The unit that keeps its variant."),
        "endsAt": ("Ends", "In UTC. Empty: until it is completed."),
        "flagKey": ("Flag key", "An experiment needs a target key or a flag key."),
        "guardrailMetric": ("Guardrail metric", "Counts as an error. Default: error."),
        "id": ("ID", ""),
        "primaryMetric": ("Primary metric", "Counts as a conversion. Default: conversion."),
        "split": ("Split (%)", ""),
        "startedAt": ("Starts", "In UTC. Used when it is scheduled."),
        "variants": ("Variants", "2 to 10 variants whose splits add up to 100."),
    },
    section="experiments",
    leads=True,
    offers=_audiences,
)
_EXPERIMENTS.declare(router, lists=False)

SEGMENTS = f"{settings.SETTINGS}/segments"
Resource(
    noun="segment",
    at=SEGMENTS,
    parameter="segmentKey",
    key="key",
    columns=[
        Column(name="key", label="Key"),
        Column(name="description", label="Description"),
        Column(name="built_in", label="Built in"),
        Column(name="created_at", label="Created"),
    ],
    sentence="Audiences for flags and experiments.",
    empty="A segment is a filter over facts of users and workspaces.",
    listing=api.list_audience_segments,
    creating=api.create_audience_segment,
    words={
        "key": ("Key", "Lower-case letters, digits and underscores. Experiments use it."),
        "label": ("Name", ""),
        "rule": (
            "Filter",
            'JSON, such as {"field": "workspace.memberCount", "op": "gte", "value": 50}.',
        ),
    },
    section="segments",
).declare(router)

NOTICES = f"{settings.SETTINGS}/release-notices"


@router.get(NOTICES, access=settings.administers())
async def get_release_notices(
    request: ApiRequest,
    cursor: Cursor = None,
    channel: ReleaseChannel | None = None,
    notice: settings.Notice | None = None,
) -> Response:
    """Look through the release notices."""
    return await _release_notices_page(request, BLANK, channel, cursor, notice)


async def _release_notices_page(
    request: ApiRequest,
    entered: Entered,
    channel: ReleaseChannel | None = None,
    cursor: str | None = None,
    notice: settings.Notice | None = None,
) -> Response:
    wanted = request.page("release-notices", DEFAULT_LIMIT, cursor, channel)
    listed = await release_notices.list_releases(request.work, channel, wanted)
    return await settings.settings_page(
        request,
        "settings_release_notices.html",
        "release-notices",
        (workspaces.list_release_notices, {"channel": channel}),
        workspaces.publish_release_notice,
        (workspaces.get_whats_new, None),
        notice=notice,
        entered=entered,
        releases=listed.releases,
        channel=channel,
        channels=list(ReleaseChannel),
        cursor=cursor,
        next=listed.cursor,
    )


@router.post(NOTICES, access=settings.administers(form=True))
@redisplays(_release_notices_page)
async def publish_release_notice_by_form(request: ApiRequest, body: Fields) -> Response:
    """Publish a release notice for all users of a channel."""
    values = {"channel": "", "title": "", "body": "", **body.texts}
    release = read_as(PublishRelease, values)
    await release_notices.publish_release(request.work, request.principal, release)
    return settings.led_to(request, "release-notices", notice=settings.Notice.ADDED)
