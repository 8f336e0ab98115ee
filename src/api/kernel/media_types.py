"""The representation of a resource that a client asks for (RFC 9110, 12.5.1)."""

from collections.abc import Sequence

_LONGEST_HEADER = 1000


def prefers(media_type: str, accept: Sequence[bytes]) -> bool:
    """True when `Accept` names the type, and does not prefer JSON; a bare `*/*` means JSON."""
    weights = dict(map(_weighed, b",".join(accept)[:_LONGEST_HEADER].decode("latin-1").split(",")))
    weight = weights.get(media_type, 0.0)
    return weight > 0 and weight >= weights.get("application/json", 0.0)


def _weighed(one: str) -> tuple[str, float]:
    """A media range with its quality; one that cannot be read counts as not wanted."""
    media, *parameters = (part.strip().lower() for part in one.split(";"))
    quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
    try:
        return media, float(quality)
    except ValueError:
        return media, 0.0
