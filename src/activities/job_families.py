"""What each family of jobs does; a family adds its line here."""

from activities.jobs import Chunks
from runtime.families import Family


def job_families() -> dict[Family, Chunks]:
    """The chunks of every family."""
    return {}
