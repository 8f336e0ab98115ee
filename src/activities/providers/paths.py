"""Resources that are named by a path below the place a connection is for."""

from urllib.parse import quote

from activities.providers.adapter import ProblemKind, ProviderProblem


def checked_path(external_id: str | None) -> str:
    """A relative path without its last slash; empty for the place itself.

    Raises ProviderProblem for one that leads elsewhere, or is spelled so that it might.
    """
    path = (external_id or "").removesuffix("/")
    if not path:
        return ""
    parts = path.split("/")
    if any(part in {"", ".", ".."} for part in parts) or "\0" in path or "\\" in path:
        raise ProviderProblem(ProblemKind.INVALID, "The resource's id is not a path below.")
    return path


def parent_of(path: str) -> str | None:
    """The path of the folder that something is in; None for the place itself."""
    return path.rpartition("/")[0] or None


def name_of(path: str) -> str:
    return path.rpartition("/")[2]


def quoted(path: str) -> str:
    """A path as it stands in a URL (RFC 3986, 3.3)."""
    return quote(path, safe="/~")
