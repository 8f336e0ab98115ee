"""Actions on one run: run it again, cancel it, compare it, open its page."""

from collections.abc import Iterator, Mapping

from cli.api_client import Json
from cli.client.platform import Place, connected
from cli.client.tables import plain
from cli.client.wire import overview_of, page_of, path_of, print_json, show_page
from cli.console import aside, say, terminal


async def retry_run(place: Place, run_id: str, body: Mapping[str, str], *, as_json: bool) -> None:
    """Run a run again. Raises StartError."""
    async with await connected(place) as client:
        path = await path_of(client, run_id)
        run = await client.call("POST", f"{path}/retry", json=dict(body))
        page = page_of(client, run)
    if as_json:
        print_json(run)
        return
    say(terminal(), run["id"])
    say(aside(), f"Its page: {page}")


async def cancel_run(place: Place, run_id: str, *, as_json: bool) -> None:
    """Cancel a run. Raises StartError."""
    async with await connected(place) as client:
        path = await path_of(client, run_id)
        run = await client.call("POST", f"{path}/cancel", json={})
    if as_json:
        print_json(run)
    else:
        say(terminal(), run["status"])


async def open_run(place: Place, run_id: str, *, as_json: bool) -> None:
    """Print the address of the page of a run, and open it for a person. Raises StartError."""
    async with await connected(place) as client:
        page = page_of(client, (await overview_of(client, run_id))["run"])
    show_page(page, as_json=as_json)


async def compare_runs(
    place: Place, run_id: str, reference_id: str | None, *, as_json: bool
) -> None:
    """Print how a run differs from another. Raises StartError."""
    async with await connected(place) as client:
        path = await path_of(client, run_id)
        query = {} if reference_id is None else {"with": reference_id}
        comparison = await client.call("GET", f"{path}/comparison", params=query)
    if as_json:
        print_json(comparison)
        return
    for line in comparison_lines(comparison):
        say(terminal(), line)


def comparison_lines(comparison: Json) -> Iterator[str]:
    """The differences of two runs, line by line: the reference as -, the run as +."""
    for sign, name in (("-", "reference"), ("+", "run")):
        run = comparison[name]
        yield f"{sign} {run['id']} {run['status']}, version {run['version']}"
    yield from _values("payload", comparison["triggerPayload"])
    first = comparison.get("firstDivergence")
    for node in comparison["nodes"]:
        if not node["differs"]:
            continue
        is_first = first is not None and _is_at(node, first)
        differs = ", ".join(str(aspect) for aspect in node["differs"])
        place = f"{node['nodeId']} {node['scopeKey']}".strip()
        yield plain(f"{place}: {differs}{' (the first that differs)' if is_first else ''}")
        yield from _values("input", node["input"])
        yield from _values("output", node["output"])
    yield from _values("output of the run", comparison["output"])
    if first is None:
        yield "No node differs."
    if comparison["trimmed"]:
        yield "There are more nodes than were compared."


def _is_at(node: Json, place: Json) -> bool:
    return bool((node["nodeId"], node["scopeKey"]) == (place["nodeId"], place["scopeKey"]))


def _values(name: str, values: Json) -> Iterator[str]:
    for one in values["differences"]:
        yield plain(f"  {name} {one['path']}")
        if one.get("before") is not None:
            yield plain(f"    - {one['before']}")
        if one.get("after") is not None:
            yield plain(f"    + {one['after']}")
