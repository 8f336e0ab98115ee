"""The list of runs, as far as it was asked for."""

import asyncio
import re
from collections.abc import Mapping, Sequence

from cli.api_client import ApiClient, Json, RefusedError
from cli.client.platform import Place, connected
from cli.client.tables import clock, print_rows, taken
from cli.client.wire import list_of, print_json
from cli.console import terminal

_COLUMNS = ("ID", "STATUS", "AUTOMATION", "SOURCE", "ASKED FOR", "TOOK", "NOTE")


def joined_pairs(pairs: Sequence[str]) -> str | None:
    """The filter of the API for pairs of a key and a value, each as a person writes it."""
    escaped = [re.sub(r"([\\,])", r"\\\1", pair) for pair in pairs]
    return ",".join(escaped) or None


async def print_list(
    place: Place, filters: Mapping[str, object], limit: int, *, as_json: bool
) -> None:
    """Print the newest runs that fit. Raises StartError."""
    async with await connected(place) as client:
        path = f"{client.workspace}/automation-runs"
        listed = await list_of(client, path, "runs", filters, limit)
        if as_json:
            print_json(listed)
            return
        runs = listed["runs"]
        labels = await _labels(client, sorted({run["automationId"] for run in runs}))
    rows = [
        (
            run["id"],
            run["status"],
            labels[run["automationId"]],
            run["source"],
            clock(run["createdAt"]),
            taken(run.get("startedAt"), run.get("completedAt")),
            run.get("error") or _attributes(run),
        )
        for run in runs
    ]
    print_rows(terminal(), _COLUMNS, rows)


def _attributes(run: Json) -> str:
    return " ".join(f"{key}:{value}" for key, value in sorted(run.get("attributes", {}).items()))


async def _labels(client: ApiClient, automation_ids: Sequence[str]) -> dict[str, str]:
    """The labels of automations; the id of one that is gone."""

    async def label(automation_id: str) -> str:
        try:
            path = f"{client.workspace}/automations/{automation_id}"
            found = await client.call("GET", path)
        except RefusedError:
            return automation_id
        return str(found["label"])

    labels = await asyncio.gather(*map(label, automation_ids))
    return dict(zip(automation_ids, labels, strict=True))
