"""Reading deliveries."""

from typing import Any

from sqlalchemy import ColumnElement, Select, case, exists, func, select

from models.core.base import Id
from models.messages.deliveries.rules import OPEN_DELIVERY, DeliveryChannel
from models.messages.deliveries.tables import delivery, delivery_line

DELIVERY = delivery.c
"""The columns of deliveries in `deliveries_by`."""


def deliveries_by(
    channel: DeliveryChannel, workspace_id: Id, *columns: ColumnElement[Any]
) -> Select[Any]:
    """These columns of the deliveries of a workspace by a channel, closed ones too."""
    return select(*columns).where(
        delivery.c.workspace_id == workspace_id, delivery.c.channel == channel
    )


def has_room(
    workspace_id: ColumnElement[Any],
    channel: DeliveryChannel,
    target_id: ColumnElement[Any],
    *,
    most: int,
    most_failing: int,
) -> ColumnElement[bool]:
    """True while fewer deliveries than `most` are open to the target that columns name.

    While its circuit is not closed, `most_failing` counts instead.
    """
    failing = (
        exists(delivery_line.c.target_id)
        .where(
            delivery_line.c.workspace_id == workspace_id,
            delivery_line.c.channel == channel,
            delivery_line.c.target_id == target_id,
            delivery_line.c.retry_at.is_not(None),
        )
        .correlate_except(delivery_line)
    )
    limit = case((failing, most_failing), else_=most)
    open_ids = (
        select(delivery.c.id)
        .where(delivery.c.target_id == target_id, delivery.c.status.in_(OPEN_DELIVERY))
        .limit(limit)
        .correlate_except(delivery)
        .subquery()
    )
    return select(func.count()).select_from(open_ids).scalar_subquery() < limit
