"""The table of deliveries as durable work, for what all such work shares."""

from models.core.lifecycle.commands import WorkTable
from models.messages.deliveries.rules import DELIVERY_LIFECYCLE
from models.messages.deliveries.tables import delivery
from runtime.families import Family

DELIVERIES = WorkTable(delivery, DELIVERY_LIFECYCLE, family=Family.DELIVERY)
