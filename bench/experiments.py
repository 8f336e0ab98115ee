"""Assigning variants, against the plainest call that is authenticated."""

import uuid

import httpx2

from bench.figures import Figure
from bench.platform import Platform
from bench.rounds import Rounds
from bench.runs import in_parallel, rate

EXPERIMENTS = 5
"""That run; each call asks for all of them."""


async def assignment_rate(platform: Platform, rounds: Rounds, count: int) -> Figure:
    """Calls a second that request the variants of five experiments, and that request the caller."""
    figure = Figure("variants assigned vs who am I", "1/s", at_least=0.8)
    flags = [await _experiment(platform) for _ in range(EXPERIMENTS)]

    async def ours() -> None:
        answer = await platform.post("/v1/experiments/assign", {"flagKeys": flags})
        assert len(answer["assignments"]) == EXPERIMENTS

    async def theirs() -> None:
        (await platform.http.get("/v1/me")).raise_for_status()

    for call in (ours, theirs):
        await in_parallel(count // 4, call)
    for _ in rounds:
        assigned = await rate(count, lambda: in_parallel(count, ours))
        figure.add(assigned, await rate(count, lambda: in_parallel(count, theirs)))
    return figure


async def _experiment(platform: Platform) -> str:
    """The flag of a running experiment."""
    flag = uuid.uuid4().hex
    body = {
        "name": "Measured",
        "targetType": "flag",
        "flagKey": flag,
        "status": "scheduled",
        "variants": [{"label": "a", "split": 50}, {"label": "b", "split": 50}],
    }
    headers = {"Authorization": f"Bearer {platform.connection['sessionToken']}"}
    base = platform.connection["baseUrl"]
    async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=60) as admin:
        made = (await admin.post("/v1/admin/experiments", json=body)).raise_for_status()
        place = f"/v1/admin/experiments/{made.json()['data']['id']}"
        (await admin.patch(place, json={"status": "running"})).raise_for_status()
    return flag
