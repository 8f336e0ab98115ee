"""The circuit of a receiver on the wire."""

from models.core.base import Moment, Shape
from models.messages.deliveries.circuit import CircuitState


class CircuitBody(Shape):
    """The circuit of a receiver: `open` while it keeps failing, and its deliveries wait.

    At `nextAttemptAt` one delivery is tried, and the circuit is `half_open`: it closes when that
    arrives, and opens for longer when it does not. `failures` are those in a row.
    """

    state: CircuitState
    since: Moment | None
    next_attempt_at: Moment | None
    failures: int
