"""`workspace profile`: the platforms that commands for a terminal talk to."""

import asyncio
import os
import sys
from typing import Annotated

import typer

from cli.client.profiles import (
    Profile,
    check_profile,
    profiles_path,
    read_profiles,
    write_profiles,
)
from cli.console import reported, say, terminal

profile = typer.Typer(
    name="profile",
    help="Platforms by name, each with its URL and a key of one workspace, for `workspace runs`.",
    no_args_is_help=True,
)

_NAME = Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.")]


@profile.command()
def add(
    name: _NAME,
    url: Annotated[str, typer.Option("--url", help="The platform, as https://example.com.")],
) -> None:
    """Add a profile, or replace it, and use it from now on.

    The key is asked for, or taken from WORKSPACE_API_KEY; it never stands in a command.
    """
    with reported():
        new_profile = Profile(url.rstrip("/"), _key())
        check_profile(name, new_profile)
        label = asyncio.run(_workspace_of(new_profile))
        profiles = read_profiles(profiles_path())
        profiles.by_name[name] = new_profile
        profiles.current = name
        write_profiles(profiles_path(), profiles)
        say(terminal(), f"{name} is in use: the workspace {label} at {new_profile.url}.")


@profile.command(name="list")
def list_profiles() -> None:
    """List the profiles; the one in use has a star. Keys are not shown."""
    with reported():
        profiles = read_profiles(profiles_path())
        for name, known in sorted(profiles.by_name.items()):
            say(terminal(), f"{'*' if name == profiles.current else ' '} {name}  {known.url}")


@profile.command()
def use(name: _NAME) -> None:
    """Use a profile where none is named."""
    with reported():
        profiles = read_profiles(profiles_path())
        profiles.named(name)
        profiles.current = name
        write_profiles(profiles_path(), profiles)


@profile.command()
def remove(name: _NAME) -> None:
    """Remove a profile and its key from this machine; the key itself stays valid."""
    with reported():
        profiles = read_profiles(profiles_path())
        profiles.named(name)
        del profiles.by_name[name]
        if profiles.current == name:
            profiles.current = None
        write_profiles(profiles_path(), profiles)


def _key() -> str:
    key = os.environ.get("WORKSPACE_API_KEY")
    if key:
        return key
    if sys.stdin.isatty():
        return str(typer.prompt("API key", hide_input=True)).strip()
    return sys.stdin.readline().strip()


async def _workspace_of(new_profile: Profile) -> str:
    """The label of the workspace that a key belongs to. Raises StartError and RefusedError."""
    from pathlib import Path

    from cli.api_client import api_client
    from cli.client.tables import plain

    async with await api_client(Path(), new_profile.url, new_profile.api_key) as client:
        entry = await client.call("GET", client.workspace)
        return plain(entry["workspace"]["name"])
