"""Reading deliveries."""

from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, Select, func, select

from models.core.base import Id
from models.messages.deliveries.rules import OPEN_DELIVERY, DeliveryChannel
from models.messages.deliveries.tables import delivery

DELIVERY = delivery.c
"""The columns of deliveries in `deliveries_by`."""


def deliveries_by(
    channel: DeliveryChannel, workspace_id: Id, *columns: ColumnElement[Any]
) -> Select[Any]:
    """These columns of the deliveries of a workspace by a channel, closed ones too."""
    return select(*columns).where(
        delivery.c.workspace_id == workspace_id, delivery.c.channel == channel
    )


def open_deliveries_to(target_id: ColumnElement[Any], most: int) -> ScalarSelect[int]:
    """The number of open deliveries to the target that a column names, counted up to `most`."""
    open_ids = (
        select(delivery.c.id)
        .where(delivery.c.target_id == target_id, delivery.c.status.in_(OPEN_DELIVERY))
        .limit(most)
        .correlate_except(delivery)
        .subquery()
    )
    return select(func.count()).select_from(open_ids).scalar_subquery()
