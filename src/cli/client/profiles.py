"""Profiles: platforms by name, each with its URL and a key, in a file of the person's own."""

import json
import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from cli.supervisor.errors import StartError

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
            raise StartError(f"There is no profile {name!r}: `workspace profile list` shows them.")
        return self.by_name[name]


def profiles_path() -> Path:
    """The file of the profiles."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "workspace" / "profiles.toml"


def read_profiles(path: Path) -> Profiles:
    """The profiles of a file, none when it is not there. Raises StartError."""
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
        raise StartError(f"{path} is damaged: correct it, or remove it.") from None


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
    """Raises StartError for a name, a URL or a key that is none."""
    if not _NAME.fullmatch(name):
        raise StartError(f"{name!r} is no name: up to 40 letters, digits, - and _.")
    if not _VALUE.fullmatch(profile.url) or not profile.url.startswith(("http://", "https://")):
        raise StartError(f"{profile.url!r} is no URL such as https://example.com.")
    if not _VALUE.fullmatch(profile.api_key):
        raise StartError("The key is empty, or has characters that no key has.")
