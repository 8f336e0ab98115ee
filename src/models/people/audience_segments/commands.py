"""Making segments."""

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from models.core.access.rules import Principal
from models.people.audience_segments.queries import MAX_SEGMENTS, segment_body
from models.people.audience_segments.rules import BUILT_IN, read_rule
from models.people.audience_segments.shapes import AudienceSegmentBody, CreateAudienceSegment
from models.people.audience_segments.tables import AudienceSegment, audience_segment
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, ValidationError


async def create_segment(
    work: UnitOfWork, principal: Principal, body: CreateAudienceSegment
) -> AudienceSegmentBody:
    """A segment of the platform's own.

    Raises ValidationError for a rule that cannot be read or a key that is in use, ConflictError
    when there are too many.
    """
    read_rule(body.rule, work.now)
    if await work.scalar(select(func.count()).select_from(audience_segment)) >= MAX_SEGMENTS:
        raise ConflictError(f"There are {MAX_SEGMENTS} segments already.")
    statement = (
        insert(audience_segment)
        .values(
            key=body.key,
            label=body.label,
            description=body.description,
            rule=body.rule,
            created_by_user_id=principal.user_id,
            created_at=work.now,
        )
        .on_conflict_do_nothing()
        .returning(audience_segment)
    )
    row = None if body.key in BUILT_IN else await work.first(statement, of=AudienceSegment)
    if row is None:
        raise ValidationError.at("key", f"There is a segment with the key {body.key} already.")
    return segment_body(row)
