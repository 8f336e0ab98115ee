"""The guide to operations over runs: many are cancelled, retried or resumed together."""

from api.reference.guides.runs import AUTOMATION, ENABLED, WORKSPACE
from api.reference.guides.steps import Guide, Step, Topic

_OPERATIONS = f"{WORKSPACE}/run-operations"
_CHOICE = {"action": "cancel", "filter": {"automationId": "{automationId}", "status": "queued"}}

RUN_OPERATIONS = Guide(
    slug="run-operations",
    says=(
        "One operation cancels, retries or resumes up to 100,000 runs. It survives every restart,"
        " treats each run at most once, and tells what became of each."
    ),
    topics=(
        Topic(
            name="example",
            says="Runs that were started by mistake, counted first and then cancelled together.",
            steps=(
                *ENABLED,
                Step(
                    request=f"POST {AUTOMATION}/runs/batch",
                    body={"payloads": [{"amount": 9, "parts": 3}, {"amount": 8, "parts": 2}]},
                    answers={"accepted": 2},
                ),
                Step(
                    request=f"POST {_OPERATIONS}/preview",
                    body=_CHOICE,
                    says="A preview changes nothing. It counts the runs, their versions, and the"
                    " nodes whose effects a retry would repeat.",
                ),
                Step(
                    request=f"POST {_OPERATIONS}",
                    body={**_CHOICE, "rate": 50},
                    says="`rate` bounds the runs that are changed in a second.",
                    status=202,
                    keeps={"operationId": "id"},
                ),
                Step(request=f"GET {_OPERATIONS}/{{operationId}}"),
                Step(request=f"GET {_OPERATIONS}/{{operationId}}/results"),
            ),
        ),
        Topic(
            name="selection",
            says=(
                "The runs are named by `runIds`, or by the `filter` of a list of runs. A filter"
                " selects what exists at the request, so the selection cannot grow. Ids that are"
                " unknown or out of reach end as `skipped`. Each part acts with the rights that its"
                " caller has then."
            ),
            shapes=("CreateRunOperation",),
        ),
        Topic(
            name="retries",
            says=(
                "A retry begins at the node that failed or from the start, on the version of then,"
                " the one that is published now, or a named one. A run that was retried before is"
                " skipped unless `again` is set. The new runs name the operation in"
                " `metadata.operationId`, and stand in line behind other work of their workspace."
            ),
            shapes=("BulkRetry",),
        ),
        Topic(
            name="course",
            says=(
                "An operation can be paused, resumed and cancelled; what it has done stays."
                " `undo` is another operation: it cancels the runs that a retry started, or"
                " runs again what was cancelled."
            ),
            facts=(
                ("`succeeded`", "the run was changed, or a new one started: `newRunId`"),
                ("`skipped`", "there was nothing to do: `reason` says why"),
                ("`failed`", "it was refused, and others go on"),
            ),
        ),
    ),
)
