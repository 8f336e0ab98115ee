"""The guide to pauses: runs that are accepted and wait, circuit breakers, and outbound limits."""

from api.reference.guides.runs import AUTOMATION, ENABLED, WORKSPACE
from api.reference.guides.steps import Guide, Step, Topic

_LIMITS = f"{WORKSPACE}/integrations/outbound-limits"

PAUSES = Guide(
    slug="pauses",
    says=(
        "Under a pause runs are accepted and wait in their order. A circuit breaker pauses an"
        " automation that keeps failing. An outbound limit makes calls of a place wait in line."
    ),
    topics=(
        Topic(
            name="example",
            says="An automation that is paused, takes a run meanwhile, and is resumed at a rate.",
            steps=(
                *ENABLED,
                Step(
                    request=f"POST {AUTOMATION}/pause",
                    body={"reason": "The shop is being moved."},
                    answers={"state": "paused"},
                ),
                Step(
                    request=f"POST {AUTOMATION}/run",
                    body={"triggerPayload": {"amount": 9, "parts": 3}},
                    says="The run is accepted. `metadata.waitingFor` says why it does not start.",
                    answers={"status": "queued"},
                ),
                Step(
                    request=f"POST {AUTOMATION}/resume",
                    body={"rate": 60},
                    says="The oldest go first, 60 a minute; without `rate` all at once.",
                ),
                Step(
                    request=f"PUT {AUTOMATION}/circuit-breaker",
                    body={"failures": 5, "pauseSeconds": 300},
                    answers={"state": "closed"},
                ),
                Step(
                    request=f"POST {_LIMITS}",
                    body={"host": "api.example.com", "perSecond": 5, "atOnce": 2},
                    status=201,
                ),
                Step(request=f"GET {_LIMITS}"),
            ),
        ),
        Topic(
            name="pauses",
            says=(
                "An automation, a whole workspace or a connection is paused. Runs that are under"
                " way go on; of a connection their next call waits. Each can be cancelled as any"
                " run. A resume that is under way at a rate can be paused again, and keeps the"
                " order."
            ),
            shapes=("PauseWork", "ResumeWork"),
        ),
        Topic(
            name="circuit-breakers",
            says=(
                "After `failures` runs in a row that failed, a breaker opens: runs wait. After"
                " `pauseSeconds` it lets one try. If that succeeds it closes and what waits starts;"
                " if not, it stays open as long again. Who made the automation is told."
            ),
            facts=(
                ("`closed`", "runs start as they come"),
                ("`open`", "runs wait until the breaker tries one"),
                ("`half_open`", "one run is under way, and its end decides"),
            ),
        ),
        Topic(
            name="outbound-limits",
            says=(
                "A limit bounds the calls of a host or through a connection, over all runs of the"
                " workspace: so many a second, so many at once. Calls that wait stand in line, and"
                " their runs say so. An answer with `Retry-After` holds back everyone of the"
                " workspace who calls the same place, with or without a limit."
            ),
            shapes=("CreateOutboundLimit",),
        ),
    ),
)
