"""Profiles: platforms by name, `workspace profile`, and the platform a command talks to."""

import asyncio
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, NamedTuple, ParamSpec

import typer

from cli.client.output import INTERRUPTED, take_options
from cli.console import StartError, aside, complain, reported, say, terminal

if TYPE_CHECKING:
    from cli.api_client import ApiClient


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_VALUE = re.compile(r"[\x21-\x7e]{1,2000}")


@dataclass(frozen=True, slots=True)
class Profile:
    """A platform, and the key of one workspace of it."""

    url: str
    api_key: str


@dataclass(slots=True)
class Profiles:
    """The content of the file; `current` is the profile that is used where none is named."""

    current: str | None = None
    by_name: dict[str, Profile] = field(default_factory=dict)

    def named(self, name: str) -> Profile:
        """A profile by its name. Raises StartError when there is none."""
        if name not in self.by_name:
            raise StartError(f"Profile {name!r} not found. List profiles: workspace profile list")
        return self.by_name[name]


def profiles_path() -> Path:
    """The file of the profiles."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "workspace" / "profiles.toml"


def read_profiles(path: Path) -> Profiles:
    """The profiles of a file, none when it does not exist. Raises StartError."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = document.get("profiles", {})
        by_name = {name: Profile(one["url"], one["api_key"]) for name, one in entries.items()}
        return Profiles(document.get("current"), by_name)
    except FileNotFoundError:
        return Profiles()
    except OSError as error:
        raise StartError(f"{path} cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StartError(f"{path} is damaged. Fix or remove it.") from None


def write_profiles(path: Path, profiles: Profiles) -> None:
    """Replace the file, which only its owner may read. Raises StartError."""
    lines = [] if profiles.current is None else [f"current = {json.dumps(profiles.current)}"]
    for name, profile in sorted(profiles.by_name.items()):
        lines += ["", f"[profiles.{name}]", f"url = {json.dumps(profile.url)}"]
        lines += [f"api_key = {json.dumps(profile.api_key)}"]
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("\n".join(lines).lstrip("\n") + "\n")
        draft.replace(path)
    except OSError as error:
        raise StartError(f"{path} cannot be written ({error.strerror}).") from None


def check_profile(name: str, profile: Profile) -> None:
    """Raises StartError for an invalid name, URL or key."""
    if not _NAME.fullmatch(name):
        raise StartError(f"Invalid name {name!r}. Use up to 40 letters, digits, - and _.")
    if not _VALUE.fullmatch(profile.url) or not profile.url.startswith(("http://", "https://")):
        raise StartError(f"Invalid URL {profile.url!r}. Enter a URL such as https://example.com.")
    if not _VALUE.fullmatch(profile.api_key):
        raise StartError("Invalid API key: it is empty or has invalid characters.")


profile = typer.Typer(
    name="profile",
    help="Manage profiles: the URL of a platform and an API key of one workspace.",
    no_args_is_help=True,
)

_NAME_ARGUMENT = Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.")]


@profile.command()
def add(
    name: _NAME_ARGUMENT,
    url: Annotated[str, typer.Option("--url", help="URL, e.g. https://example.com.")],
) -> None:
    """Add or replace a profile, and make it active.

    Reads the API key from WORKSPACE_API_KEY, a prompt or standard input.
    """
    with reported():
        new_profile = Profile(url.rstrip("/"), _key())
        check_profile(name, new_profile)
        label = asyncio.run(_workspace_of(new_profile))
        profiles = read_profiles(profiles_path())
        profiles.by_name[name] = new_profile
        profiles.current = name
        write_profiles(profiles_path(), profiles)
        say(terminal(), f"{name} is now active: workspace {label} at {new_profile.url}.")


@profile.command(name="list")
def list_profiles() -> None:
    """List profiles; * marks the active one. Keys are not shown."""
    with reported():
        profiles = read_profiles(profiles_path())
        if not profiles.by_name:
            say(aside(), "No profiles. Add one: workspace profile add NAME --url URL")
        for name, known in sorted(profiles.by_name.items()):
            say(terminal(), f"{'*' if name == profiles.current else ' '} {name}  {known.url}")


@profile.command()
def use(name: _NAME_ARGUMENT) -> None:
    """Make a profile active."""
    with reported():
        profiles = read_profiles(profiles_path())
        profiles.named(name)
        profiles.current = name
        write_profiles(profiles_path(), profiles)


@profile.command()
def remove(name: _NAME_ARGUMENT) -> None:
    """Remove a profile from this machine. Its API key stays valid."""
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
    from cli.client.output import plain

    async with await api_client(Path(), new_profile.url, new_profile.api_key) as client:
        entry = await client.call("GET", client.workspace)
        return plain(entry["workspace"]["name"])


PROFILE = Annotated[
    str | None,
    typer.Option(
        "--profile", envvar="WORKSPACE_PROFILE", help="Profile to use. Default: the active one."
    ),
]
STATE_DIR = Annotated[
    Path | None,
    typer.Option(
        envvar="WORKSPACE_STATE_DIR",
        help="State directory of a local platform. Default without a profile: .state.",
    ),
]
LIMIT = Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of rows.")]
JSON = Annotated[bool, typer.Option("--json", help="Print the API response as JSON.")]

Place = tuple[str | None, Path | None]
"""A profile, and a state directory."""


class Options(NamedTuple):
    """The options that every command of a client has: the platform, and the form of its output."""

    place: Place
    as_json: bool


P = ParamSpec("P")


def client_command(
    function: Callable[Concatenate[Options, P], Coroutine[Any, Any, None]],
) -> Callable[P, None]:
    """The command of a function, with --json, --profile and --state-dir after its own options."""

    def shared(*, json: JSON = False, profile: PROFILE = None, state_dir: STATE_DIR = None) -> None:
        raise NotImplementedError("only its parameters are read")

    @wraps(function)
    def command(*args: P.args, **given: P.kwargs) -> None:
        own: dict[str, Any] = dict(given)
        profile, state_dir, as_json = map(own.pop, ("profile", "state_dir", "json"))
        run_command(function(Options((profile, state_dir), as_json), *args, **own))

    take_options(command, function, shared)
    return command


REFUSED = 3
"""The exit code for an API error; the others say how a run ended."""


async def connected(place: Place) -> "ApiClient":
    """A client of the platform that is named, or in use, or runs here. Raises StartError."""
    from cli.api_client import api_client

    name, state_dir = place
    if name is None and state_dir is not None:
        return await api_client(state_dir, None, None)
    profiles = read_profiles(profiles_path())
    name = name or profiles.current
    if name is None:
        return await api_client(Path(".state"), None, None)
    profile = profiles.named(name)
    return await api_client(Path(".state"), profile.url, profile.api_key)


def retry_body(begin: str, version: str) -> dict[str, str]:
    """The body of a retry by its options. Raises BadParameter."""
    if begin not in ("start", "failed"):
        raise typer.BadParameter("--from must be start or failed.")
    if version not in ("own", "published"):
        raise typer.BadParameter("--version must be own or published.")
    return {"from": begin, "version": "original" if version == "own" else version}


def run_command(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a command; exits with 3 and a line for a refusal, and with 130 after Ctrl-C."""
    try:
        asyncio.run(coroutine)
    except StartError as error:
        complain(" ".join(str(error).split()))
        raise typer.Exit(REFUSED) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
