"""Pages for administrators of the platform: its state, experiments, release notices."""

from collections.abc import Mapping

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as
from api.console.routing import page_router
from api.console.workspace.settings import (
    SETTINGS,
    Notice,
    administers,
    led_to,
    settings_page,
    turning,
)
from api.kernel.routing import ApiRequest, Cursor
from models.core.pagination import DEFAULT_LIMIT
from models.people import release_notices
from models.people.experiments import commands, queries
from models.people.experiments.rules import TRANSITIONS, ExperimentStatus
from models.people.experiments.shapes import ExperimentBody, UpdateExperiment
from models.people.release_notices import PublishRelease, Release, ReleaseChannel
from models.workspace.system import system_state
from runtime.errors import PlatformError

router = page_router()


@router.get(f"{SETTINGS}/system", access=administers())
async def get_system_page(request: ApiRequest) -> Response:
    """Look at what waits, for how long, and which workers are there."""
    state = await system_state(request.work)
    return await settings_page(request, "settings_system.html", "system", state=state)


EXPERIMENTS = f"{SETTINGS}/experiments"
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


@router.get(EXPERIMENTS, access=administers())
async def get_experiments(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through experiments and their figures."""
    wanted = request.page("experiments", DEFAULT_LIMIT, cursor)
    listed = await queries.list_experiments(request.work, wanted)
    return await settings_page(
        request,
        "settings_experiments.html",
        "experiments",
        experiments=listed.experiments,
        signs=SIGNS,
        turning=turning(request, cursor, listed.cursor),
    )


@router.get(EXPERIMENT, access=administers())
async def get_experiment_page(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look at the results of an experiment."""
    return await _experiment_page(request, BLANK, notice=notice)


@router.post(f"{EXPERIMENT}/status", access=administers(form=True))
async def change_experiment_status(request: ApiRequest, body: Fields) -> Response:
    """Bring an experiment into another state."""
    experiment_id = request.ids["experimentId"]

    async def change() -> ExperimentBody:
        update = read_as(UpdateExperiment, body.texts)
        return await commands.update_experiment(request.work, experiment_id, update)

    outcome = await attempt(request, change)
    if isinstance(outcome, PlatformError):
        return await _experiment_page(request, Entered(body.texts, outcome))
    return led_to(request, "experiments", experiment_id, notice=Notice.SAVED)


async def _experiment_page(
    request: ApiRequest, entered: Entered, notice: Notice | None = None
) -> Response:
    experiment = await queries.get_experiment(request.work, request.ids["experimentId"])
    return await settings_page(
        request,
        "settings_experiment.html",
        "experiments",
        notice=notice,
        entered=entered,
        experiment=experiment,
        signs=SIGNS,
        following=[one for one in ExperimentStatus if one in TRANSITIONS[experiment.status]],
    )


NOTICES = f"{SETTINGS}/release-notices"


@router.get(NOTICES, access=administers())
async def get_release_notices(
    request: ApiRequest,
    cursor: Cursor = None,
    channel: ReleaseChannel | None = None,
    notice: Notice | None = None,
) -> Response:
    """Look through the release notices."""
    return await _release_notices_page(request, BLANK, channel, cursor, notice)


@router.post(NOTICES, access=administers(form=True))
async def publish_release_notice_by_form(request: ApiRequest, body: Fields) -> Response:
    """Publish a release notice for all users of a channel."""

    async def publish() -> Release:
        values = {"channel": "", "title": "", "body": "", **body.texts}
        release = read_as(PublishRelease, values)
        return await release_notices.publish_release(request.work, request.principal, release)

    outcome = await attempt(request, publish)
    if isinstance(outcome, PlatformError):
        return await _release_notices_page(request, Entered(body.texts, outcome))
    return led_to(request, "release-notices", notice=Notice.ADDED)


async def _release_notices_page(
    request: ApiRequest,
    entered: Entered,
    channel: ReleaseChannel | None = None,
    cursor: str | None = None,
    notice: Notice | None = None,
) -> Response:
    wanted = request.page("release-notices", DEFAULT_LIMIT, cursor, channel)
    listed = await release_notices.list_releases(request.work, channel, wanted)
    return await settings_page(
        request,
        "settings_release_notices.html",
        "release-notices",
        notice=notice,
        entered=entered,
        releases=listed.releases,
        channel=channel,
        channels=list(ReleaseChannel),
        turning=turning(request, cursor, listed.cursor, channel=channel),
    )
