"""The guide to many runs: found by attributes and filters, counted, and compared."""

from api.reference.guides.steps import Guide, Step, Topic

WORKSPACE = "/v1/workspaces/{workspaceId}"
RUNS = f"{WORKSPACE}/automation-runs"
AUTOMATION = f"{WORKSPACE}/automations/{{automationId}}"
ENABLED = (
    Step(
        request=f"POST {WORKSPACE}/automations",
        body={
            "label": "Send invoice",
            "graph": {
                "nodes": [
                    {
                        "id": "share",
                        "kind": "transform",
                        "config": {
                            "output": {
                                "amount": {
                                    "type": "expression",
                                    "value": "trigger.amount / trigger.parts",
                                }
                            }
                        },
                    }
                ],
                "edges": [],
            },
        },
        status=201,
        keeps={"automationId": "id"},
    ),
    Step(request=f"POST {AUTOMATION}/publish", body={}),
    Step(request=f"PATCH {AUTOMATION}", body={"enabled": True}),
)
"""An automation that is published and enabled; its id is kept."""

_EXAMPLE = Topic(
    name="example",
    says="Runs that carry an order number, found by it, and counted.",
    steps=(
        *ENABLED,
        Step(
            request=f"POST {AUTOMATION}/run",
            body={
                "triggerPayload": {"amount": 90, "parts": 3},
                "attributes": {"orderNumber": "A-1007", "region": "north"},
            },
            answers={"status": "queued"},
            keeps={"runId": "id"},
        ),
        Step(
            request=f"POST {AUTOMATION}/runs/batch",
            body={
                "payloads": [{"amount": 10, "parts": 2}, {"amount": 10, "parts": 0}],
                "attributes": [{"orderNumber": "A-1008"}, {"orderNumber": "A-1009"}],
            },
            says="Up to 1,000 runs at once, each with attributes of its own.",
            answers={"accepted": 2, "refused": 0},
        ),
        Step(
            request=f"GET {RUNS}?attribute=orderNumber:A-1007",
            answers={"runs": [{"id": "{runId}"}]},
        ),
        Step(
            request=f"POST {WORKSPACE}/run-filters",
            body={"label": "North", "query": {"attribute": "region:north"}},
            says="A filter that is used often is saved, for oneself or with `shared`.",
            status=201,
        ),
        Step(
            request=f"GET {RUNS}/statistics?by=hour",
            says="Runs that have ended are counted, so this one counts none yet.",
        ),
    ),
)

RUNS_GUIDE = Guide(
    slug="runs",
    says=(
        "Every run of a workspace is in one list. It is found by attributes that you give it and by"
        " filters, counted by outcome and hour, and compared with another run."
    ),
    topics=(
        _EXAMPLE,
        Topic(
            name="attributes",
            says=(
                "Up to 20 short strings by name say what a run is about. They are given when it"
                " starts, by a request, a batch, a trigger's binding or a calling run, or are set"
                " by a node. Lists, filters and the memo of its execution in Temporal show them;"
                " `WORKSPACE_COUNTED_ATTRIBUTES` names those that `/metrics` counts."
            ),
        ),
        Topic(
            name="waiting",
            says=(
                "A call that starts a run is answered with the queued run. With the header"
                " `Prefer: wait=30` it is answered with the ended run, if the run ends within 30"
                " seconds, and else with the run as it is then; the answer has the header"
                " `Preference-Applied`. The longest wait is 60 seconds. Where 100 calls of a"
                " workspace wait already, a further one is answered at once, without that header."
                " A call that is repeated under its `Idempotency-Key` gets the same answer. Reads"
                " of a run, of an action run and of an operation over runs take `wait=30` in the"
                " query: so a client waits on, or for the runs of a batch one by one."
            ),
        ),
        Topic(
            name="filters",
            says=(
                "All filters that are set hold. Status, source, automation, attributes and the time"
                " of acceptance are found by indexes. The others are searched for among the newest"
                " 10,000 runs that these leave: then `searchedUntil` says how far a page came, and"
                " its cursor goes on from there."
            ),
            facts=(
                ("`status`, `source`, `automationId`", "where a run stands and who started it"),
                ("`attribute`", "`key:value`, several with commas between"),
                ("`period`, `since`, `until`", "the time at which it was asked for"),
                ("`startedSince`, `endedUntil`, …", "the times of its start and its end"),
                ("`minSeconds`, `maxSeconds`", "the time it took, or has taken so far"),
                ("`errorCode`, `failedNodeId`", "a node that failed"),
                ("`text`", "a part of its payload or its error, in any case"),
            ),
            shapes=("WorkspaceRunQuery",),
        ),
        Topic(
            name="statistics",
            says=(
                "Runs that ended are counted by outcome, hour or day, with the 50th, 95th and 99th"
                " percentile of their durations and of their time in the queue, the nodes that fail"
                " and the busiest keys. The counts are exact. They are kept as sums, so a million"
                " runs are counted as quickly as a hundred."
            ),
            shapes=("RunStatistics",),
        ),
        Topic(
            name="comparison",
            says=(
                f"`GET {AUTOMATION}/runs/{{runId}}/comparison` lays two runs of an automation side"
                " by side, node by node and scope by scope: inputs, outputs, times and versions,"
                " and the first node at which they part. Without `with` the other one is the last"
                " run before it that succeeded."
            ),
            shapes=("RunComparison",),
        ),
    ),
)
