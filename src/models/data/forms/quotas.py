"""Limits of the submissions of a public form, which hold for all processes together (ADR 0149).

A limit is kept as the moment at which it is full again: each submission moves it on, and it may be
as far ahead as a burst takes. One that is full has no row. A refused submission writes nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from models.core.base import Id
from models.data.forms.tables import form_quota
from runtime.database import UnitOfWork
from runtime.errors import RateLimitedError

FORM = b""
"""The address of the limit of the whole form."""


class Quota(NamedTuple):
    """As many submissions at once as `burst`, and one more each `interval`; none: no limit."""

    burst: int
    interval: timedelta | None

    @classmethod
    def of(cls, a_minute: float, burst: int) -> "Quota":
        """The quota of a rate; 0 sets no limit."""
        return cls(burst, timedelta(minutes=1 / a_minute) if a_minute else None)


@dataclass(frozen=True, slots=True)
class Submitter:
    """The sender of an answer: a digest of form and address, and the limits that count."""

    address: bytes
    by_address: Quota
    by_form: Quota

    @property
    def quotas(self) -> Sequence[tuple[bytes, int, timedelta]]:
        """The limits that are set: the address of each, its burst, and the time of one more."""
        both = ((self.address, self.by_address), (FORM, self.by_form))
        return [
            (whose, burst, interval) for whose, (burst, interval) in both if interval is not None
        ]


class TooManySubmissionsError(RateLimitedError):
    """The form, or the address, has sent as many submissions as it may for now."""

    def __init__(self, burst: int, wait: timedelta, full: timedelta) -> None:
        seconds = max(1, math.ceil(wait.total_seconds()))
        unit = "second" if seconds == 1 else "seconds"
        super().__init__(f"Too many submissions. Try again in {seconds} {unit}.")
        self.headers = {  # type: ignore[misc]  # of this refusal, not of its class
            "Retry-After": str(seconds),
            "X-RateLimit-Limit": str(burst),
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(math.ceil(full.total_seconds())),
        }


async def check_quotas(work: UnitOfWork, form_id: Id, submitter: Submitter) -> None:
    """Refuse a submission beyond a limit, before anything is written.

    Raises TooManySubmissionsError.
    """
    limits = submitter.quotas
    rows = await work.rows(
        sa.select(form_quota.c.address, form_quota.c.full_at).where(
            form_quota.c.form_id == form_id,
            form_quota.c.address.in_([whose for whose, *_ in limits]),
        )
    )
    full_at = {row.address: row.full_at for row in rows}
    for whose, burst, interval in limits:
        full = full_at.get(whose, work.now) - work.now
        wait = full + interval - burst * interval
        if wait > timedelta():
            raise TooManySubmissionsError(burst, wait, full)


async def take_quotas(
    work: UnitOfWork, workspace_id: Id, form_id: Id, submitter: Submitter
) -> None:
    """Count a submission; others of the form wait for its transaction.

    Raises TooManySubmissionsError where others took what was left.
    """
    limits = submitter.quotas
    if not limits:
        return
    statement = insert(form_quota).values(
        [
            {
                "workspace_id": workspace_id,
                "form_id": form_id,
                "address": whose,
                "full_at": work.now + interval,
            }
            for whose, _, interval in limits
        ]
    )
    later = sa.func.greatest(form_quota.c.full_at, work.now) + (
        statement.excluded.full_at - work.now
    )
    furthest = sa.case(
        *(
            (form_quota.c.address == whose, work.now + burst * interval)
            for whose, burst, interval in limits
        )
    )
    statement = statement.on_conflict_do_update(
        index_elements=["form_id", "address"], set_={"full_at": later}, where=later <= furthest
    )
    taken = await work.rows(statement.returning(form_quota.c.address))
    if len(taken) < len(limits):
        await check_quotas(work, form_id, submitter)
        _, burst, interval = limits[0]
        raise TooManySubmissionsError(burst, interval, burst * interval)
