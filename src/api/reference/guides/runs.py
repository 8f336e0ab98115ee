"""Guides to runs: many of them, operations over them, incidents and alert rules, pauses."""

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

_RULES = f"{WORKSPACE}/alert-rules"

INCIDENTS = Guide(
    slug="incidents",
    says=(
        "Failures with one cause are one incident. It is told when it opens, when it has grown"
        " tenfold and when it closes; its runs are retried together after a fix."
    ),
    topics=(
        Topic(
            name="example",
            says="A rule that tells of many failures, tried before it is relied on.",
            steps=(
                *ENABLED,
                Step(
                    request=f"POST {_RULES}",
                    body={
                        "label": "Invoices fail",
                        "condition": {
                            "kind": "failures",
                            "runs": 10,
                            "minutes": 15,
                            "query": {"automationId": "{automationId}"},
                        },
                    },
                    status=201,
                    keeps={"ruleId": "id"},
                ),
                Step(
                    request=f"POST {_RULES}/{{ruleId}}/test",
                    says="A test looks now and tells nobody.",
                ),
                Step(request=f"GET {_RULES}/{{ruleId}}/firings"),
                Step(request=f"GET {WORKSPACE}/incidents?state=open"),
            ),
        ),
        Topic(
            name="grouping",
            says=(
                "A failed run belongs to the incident of its automation, node, error code and"
                " message, in which numbers, ids and quoted values do not count. An incident has"
                " the first and last failure, their number, the runs and the records that they are"
                " about, the versions that failed, and the one that is suspected."
            ),
            shapes=("IncidentDetail",),
        ),
        Topic(
            name="course",
            says=(
                "An incident is assigned to a member, muted, or given a note. It closes by itself"
                " when all its runs have been retried with success, or by hand. A failure after"
                " that opens it again."
            ),
            facts=(
                ("`POST …/retry/preview`", "counts the runs, and the effects that would repeat"),
                ("`POST …/retry`", "retries all its runs by one operation over runs"),
                ("`GET …/runs`, `GET …/records`", "lists what it has touched"),
            ),
        ),
        Topic(
            name="alerts",
            says=(
                "A rule is looked at once a minute, with the rights of who saved it last. Its"
                " recipients get a notification, by mail as well; webhooks have `alert.fired` and"
                " `alert.resolved`."
            ),
            facts=(
                ("`failures`", "so many runs failed or timed out within some minutes"),
                ("`silence`", "no run of an automation has ended, or succeeded, for so long"),
                ("`duration`", "an open run was started too long ago"),
                ("`queue_age`", "a run has been queued for too long"),
                ("`worker_gone`", "no worker has been there for so long"),
                ("`connection_failing`", "calls through a connection failed so often in a row"),
            ),
            shapes=("CreateAlertRule",),
        ),
    ),
)

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
