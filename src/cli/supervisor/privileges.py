"""The account that runs PostgreSQL, which refuses to run as root.

When root starts the platform, PostgreSQL runs as an unprivileged account. Where that account
cannot reach the binaries or the data, because a directory above them is closed, the process is
given the one capability to pass through directories, instead of opening root's directories to all.
"""

import os
import pwd
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.supervisor.errors import StartError

_ACCOUNTS = ("postgres", "pgserver", "nobody")
# linux/capability.h; containers often keep the second and drop the first, which gives less.
_CAPABILITIES = ((2, "dac_read_search"), (1, "dac_override"))


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int

    def owns(self, *paths: Path) -> None:
        for path in paths:
            os.chown(path, self.uid, self.gid)

    def command(self, command: Sequence[str], reads: Sequence[Path]) -> list[str]:
        """The command, run as this account by root, able to read what lies at `reads`.

        Raises StartError when a directory in between is closed and no tool can pass it.
        """
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            raise StartError(
                "PostgreSQL does not run as root, and setpriv (util-linux) is not installed to"
                " change the account: start the platform as another user, or set DATABASE_URL."
            )
        options = [f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]
        passage = self._passage(reads)
        kinds = ("inh-caps", "ambient-caps", "bounding-set")
        options += [f"--{kind}=-all{passage}" for kind in kinds]
        if passage:
            # Else access(2), which PostgreSQL looks for its programs with, ignores capabilities.
            options.append("--securebits=+no_setuid_fixup")
        return [setpriv, *options, *command]

    def _passage(self, reads: Sequence[Path]) -> str:
        """The capability that passes the closed directories above `reads`, if there are any."""
        parents = (above for path in reads for above in path.parents)
        barrier = next((above for above in parents if not _passes(self, above)), None)
        if barrier is None:
            return ""
        for bit, name in _CAPABILITIES:
            if _effective_capabilities() >> bit & 1:
                return f",+{name}"
        raise StartError(
            f"PostgreSQL does not run as root, and no other account may pass {barrier}: choose a"
            " --state-dir elsewhere, start the platform as another user, or set DATABASE_URL."
        )


def service_account(data: Path) -> Account | None:
    """The account PostgreSQL must run as, or None for the one that runs us."""
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    for name in _ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise StartError(
        "PostgreSQL does not run as root, and this machine has no account for it: start the"
        " platform as another user, or set DATABASE_URL."
    )


def _passes(account: Account, directory: Path) -> bool:
    status = directory.stat()
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def _effective_capabilities() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0
