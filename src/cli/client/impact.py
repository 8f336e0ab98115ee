"""`workspace impact`, the places that name a thing, and `--dry-run`, the changes of a command."""

from typing import Annotated

import typer

from cli.api_client import Json
from cli.client.profiles import Options, Place, client_command

DRY_RUN = Annotated[bool, typer.Option("--dry-run", help="Show the changes; change nothing.")]

_PLACES = ("KIND", "LABEL", "VERSION", "NODE", "PATH", "ACCESS", "BREAKS")
_RESOURCES = ("CHANGE", "KIND", "ID", "KEYS")


@client_command
async def impact(
    options: Options,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="field, option, database, secret, …")],
    thing: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Its ID; of an option, that of its field.")
    ] = None,
    *,
    key: Annotated[str | None, typer.Option(help="Key of an option, or name of a secret.")] = None,
    change: Annotated[str, typer.Option(help="delete, rename or convert.")] = "delete",
) -> None:
    """List the places that name a thing, and what a change of it breaks.

    Exits with 1 when something breaks, and with 3 on an API error.
    """
    wanted = {"kind": kind, "id": thing, "key": key, "change": change}
    body = {name: value for name, value in wanted.items() if value is not None}
    await print_impact(options.place, body, as_json=options.as_json)


async def print_impact(place: Place, body: Json, *, as_json: bool) -> None:
    """Print the impact of a change, and exit with 1 when it breaks something. Raises StartError."""
    from cli.client.output import plain, print_json, print_rows
    from cli.client.profiles import connected
    from cli.console import say, terminal

    async with await connected(place) as client:
        answer = await client.call("POST", f"{client.workspace}/impact", json=body)
    if as_json:
        print_json(answer)
    else:
        rows = [
            (
                naming["kind"],
                plain(naming["label"]),
                naming.get("version", ""),
                plain(naming.get("nodeId", "")),
                plain(naming["path"]),
                naming["access"],
                "yes" if naming["breaks"] else "no",
            )
            for naming in answer["places"]
        ]
        print_rows(terminal(), _PLACES, rows, empty="No places.")
        hidden = f", {answer['hidden']} not visible to you" if answer["hidden"] else ""
        for run in answer["immovableRuns"]:
            say(terminal(), f"Run {run['id']} of {plain(run['label'])} {run['reason']}.")
        say(terminal(), f"{answer['total']} places, {answer['breaking']} break{hidden}.")
    if answer["breaking"]:
        raise typer.Exit(1)


def print_changes(changes: Json, *, as_json: bool) -> None:
    """Print the changes of a dry run."""
    from cli.client.output import plain, print_json, print_rows
    from cli.console import say, terminal

    if as_json:
        print_json(changes)
        return
    rows = [
        (row["operation"], row["kind"], row["id"], ", ".join(map(plain, row["changedKeys"])))
        for row in changes["resources"]
    ]
    print_rows(terminal(), _RESOURCES, rows, empty="No changes.")
    for start in changes["automations"]:
        say(terminal(), f"Starts {plain(start['label'])}: {start['runs']} runs.")
    for message in changes["messages"]:
        say(terminal(), f"Sends {message['count']} by {message['channel']}.")
    for work in changes["work"]:
        say(terminal(), f"{work['intent'].capitalize()}: {work['count']} {work['workflow_kind']}.")
    say(terminal(), "Dry run. Nothing was changed.")
