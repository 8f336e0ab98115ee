"""The circuit breaker of an automation: failures in a row pause it, and one run tries it again."""

from api.kernel.routing import ApiRequest, Data, Router
from api.routers.automation.automations import AUTOMATION, READ, WRITE
from models.automation.circuit_breakers import commands
from models.automation.circuit_breakers.queries import answer
from models.automation.circuit_breakers.shapes import CircuitBreakerShape, SetCircuitBreaker

router = Router(tags=["automations"])

BREAKER = f"{AUTOMATION}/circuit-breaker"


@router.get(BREAKER, access=READ)
async def get_circuit_breaker(request: ApiRequest) -> Data[CircuitBreakerShape]:
    """Get the circuit breaker of an automation, its state, and how many runs rest under it."""
    return await _answer(request)


@router.put(BREAKER, access=WRITE)
async def set_circuit_breaker(
    request: ApiRequest, body: SetCircuitBreaker
) -> Data[CircuitBreakerShape]:
    """Give an automation a circuit breaker, or other numbers to the one it has.

    After `failures` failed runs in a row it opens: runs rest as under a pause. After `pauseSeconds`
    the oldest is let through. Its success closes the breaker and starts the rest; its failure opens
    it for the same time. Tests count neither way, nor do cancelled runs. A resume closes it.
    """
    place = request.actor.workspace_id, request.ids["automationId"]
    await commands.set_breaker(request.work, *place, body)
    return await _answer(request)


@router.delete(BREAKER, access=WRITE)
async def remove_circuit_breaker(request: ApiRequest) -> Data[CircuitBreakerShape]:
    """Take the circuit breaker from an automation; what rests under it starts."""
    place = request.actor.workspace_id, request.ids["automationId"]
    await commands.remove_breaker(request.work, *place)
    return await _answer(request)


async def _answer(request: ApiRequest) -> Data[CircuitBreakerShape]:
    place = request.actor.workspace_id, request.ids["automationId"]
    return Data(await answer(request.work, *place))
