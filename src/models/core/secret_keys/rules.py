"""The comparison of configured keys with the keys of the database. Pure."""

from collections.abc import Collection, Iterable

from runtime.errors import UnavailableError

PAGE = "docs/secret-keys.md"


class WrongSecretKeyError(UnavailableError):
    """The process lacks a key under which the database holds values.

    `keys` names the keys for operators. It is in no answer: an id can be compared with guesses.
    """

    def __init__(
        self, message: str, recorded: Iterable[bytes], configured: Iterable[bytes]
    ) -> None:
        super().__init__(message)
        self.keys = f"Of the database: {named(recorded)}; configured: {named(configured)}."


def wrong_key(recorded: Iterable[bytes], configured: Iterable[bytes]) -> WrongSecretKeyError:
    """The error of a process that has no key of its database."""
    return WrongSecretKeyError(
        "WORKSPACE_SECRET_KEY is not the key of this database. Set the key it was written under."
        f" To change the key, put the new one before it: NEW,OLD ({PAGE}).",
        recorded,
        configured,
    )


def lacking_key(missing: Iterable[bytes], configured: Iterable[bytes]) -> WrongSecretKeyError:
    """The error of a process that has some of the keys of its database."""
    return WrongSecretKeyError(
        "WORKSPACE_SECRET_KEY lacks a key of this database. Add it after a comma. An old key can be"
        f" removed after `workspace rotate-secret` ({PAGE}).",
        missing,
        configured,
    )


def check_keys(recorded: Collection[bytes], configured: Collection[bytes]) -> None:
    """Compare the keys of a database with the keys of a process. Raises WrongSecretKeyError.

    A database without keys is one that no process has written to yet.
    """
    missing = set(recorded) - set(configured)
    if not missing:
        return
    if len(missing) == len(recorded):
        raise wrong_key(recorded, configured)
    raise lacking_key(missing, configured)


def named(ids: Iterable[bytes]) -> str:
    """Keys as people see them: `key 1a2b3c4d`."""
    return ", ".join(f"key {key_id.hex()}" for key_id in ids)
