"""Changes of which build takes new work, each checked against the deployment as it is."""

from collections.abc import Sequence
from datetime import UTC, datetime

from cli.deploy.deployment import Build, Deployment, Routing, State
from cli.deploy.errors import RefusedError, unknown_build, without_workers

_NEVER = datetime.min.replace(tzinfo=UTC)


def require_build(deployment: Deployment, routing: Routing, build_id: str) -> Build:
    """The build of this name. Raises RefusedError."""
    build = routing.build(build_id)
    if build is None:
        names = [build.build_id for build in routing.builds]
        raise unknown_build(deployment.name, build_id, names)
    return build


async def promote(deployment: Deployment, build_id: str) -> str:
    """Make a build current; says what has become of it. Raises RefusedError."""
    routing = await deployment.routing()
    if require_build(deployment, routing, build_id).state is State.CURRENT:
        return f"{build_id} is current already."
    await _require_workers(deployment, build_id)
    await deployment.promote(build_id, routing.token)
    return f"{build_id} is current: it takes all new work, and what is open and not pinned."


async def ramp(deployment: Deployment, build_id: str, percent: float) -> str:
    """Give a build a share of new work; says what has become of it. Raises RefusedError."""
    routing = await deployment.routing()
    build = require_build(deployment, routing, build_id)
    if build.state is State.CURRENT:
        raise RefusedError(f"Build {build_id} is current, and takes whatever no other is given.")
    if percent:
        await _require_workers(deployment, build_id)
    elif build.state is not State.RAMPING:
        return f"{build_id} takes no new work already."
    await deployment.ramp(build_id, percent, routing.token)
    return f"{build_id} takes {percent:g} % of new work." if percent else f"{build_id} takes none."


async def roll_back(deployment: Deployment) -> str:
    """Make the build current that was so before. Raises RefusedError."""
    builds = (await deployment.routing()).builds
    earlier = _earlier(builds)
    if earlier is None:
        raise RefusedError("No other build was current before.")
    return await promote(deployment, earlier.build_id)


def _earlier(builds: Sequence[Build]) -> Build | None:
    """The build that was current last, before the one that is."""
    candidates = [
        build for build in builds if build.last_current and build.state is not State.CURRENT
    ]
    return max(candidates, key=lambda build: build.last_current or _NEVER, default=None)


async def _require_workers(deployment: Deployment, build_id: str) -> None:
    workers = (await deployment.workers([build_id]))[build_id]
    idle = [queue.value for queue, processes in workers.items() if not processes]
    if idle:
        raise without_workers(build_id, idle)
