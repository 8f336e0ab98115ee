"""The guide to the nodes of a graph, as far as all kinds are alike."""

from api.reference.guides.steps import Guide, Step, Topic

_AUTOMATIONS = "/v1/workspaces/{workspaceId}/automations"
_GRAPH = {
    "nodes": [
        {
            "id": "fetch",
            "kind": "http_request",
            "config": {"url": "https://api.example.com/rates"},
            "retry": {"maxAttempts": 5, "initialDelaySeconds": 2, "backoffMultiplier": 2},
        },
        {
            "id": "greet",
            "kind": "transform",
            "config": {
                "output": {
                    "text": {
                        "type": "template",
                        "value": "{{ vars.greeting }}, {{ trigger.name }}: {{ nodes.fetch.body }}",
                    }
                }
            },
        },
        {
            "id": "sorry",
            "kind": "transform",
            "config": {"output": {"error": {"type": "node", "value": "fetch.error"}}},
        },
    ],
    "edges": [
        {"from": "fetch", "to": "greet"},
        {"from": "fetch", "to": "sorry", "outcome": "failure"},
    ],
    "variables": {"greeting": "Hello"},
    "testPayloads": [{"id": "ada", "name": "Ada", "payload": {"name": "Ada"}}],
    "onError": "stop",
}

_EXAMPLE = Topic(
    name="example",
    says=(
        "A graph with a retry, an edge for a failure, a variable and a test payload, from its draft"
        " to a run."
    ),
    steps=(
        Step(
            request=f"POST {_AUTOMATIONS}",
            body={"label": "Rates", "triggerConfig": {"kind": "manual"}, "graph": _GRAPH},
            says="A new automation is a draft. What keeps it from being published are the errors"
            " among its `referenceIssues`; warnings do not.",
            status=201,
            answers={"referenceIssues": []},
            keeps={"automationId": "id"},
        ),
        Step(
            request=f"POST {_AUTOMATIONS}/{{automationId}}/test-run",
            body={"testPayloadId": "ada", "mocks": {"fetch": {"status": 200}}},
            says="A test run takes the draft. A mock stands for the output of a node.",
            answers={"source": "test", "status": "queued"},
        ),
        Step(request=f"POST {_AUTOMATIONS}/{{automationId}}/publish", body={}),
        Step(request=f"PATCH {_AUTOMATIONS}/{{automationId}}", body={"enabled": True}),
        Step(
            request=f"POST {_AUTOMATIONS}/{{automationId}}/run",
            body={"triggerPayload": {"name": "Ada"}},
            says="A run that is asked for takes the published version of an enabled automation.",
            answers={"source": "manual", "status": "queued"},
            keeps={"runId": "id"},
        ),
        Step(request=f"GET {_AUTOMATIONS}/{{automationId}}/runs/{{runId}}"),
    ),
)

GRAPH = Guide(
    slug="graph",
    says=(
        "A node without `retry` is tried once. A graph is nodes and the edges between them. These"
        " pages tell what all nodes have in common; each kind has a page of its own under Nodes."
    ),
    topics=(
        _EXAMPLE,
        Topic(
            name="node",
            says=(
                "A node has an `id`, by which others read its output, a `kind`, and in `config`"
                " what its kind needs. A binding may stand in place of any value of the config."
                " `input` is a map of bindings that replace keys of the config.\n\n"
                "A node runs when every edge that leads to it is decided and at least one of them"
                " is taken. If none is taken, it is skipped, and the nodes that only it leads to"
                " are skipped with it. A run begins with all nodes that no edge leads to, or with"
                " those that `entryNodeIds` names."
            ),
            facts=(
                ("`timeoutSeconds`", "how long one attempt may take, 300 by default"),
                ("`disabled`", "the node is passed over as if it had succeeded"),
                ("`mock`", "with `enabled`, its output in test runs"),
            ),
            shapes=("Mock",),
        ),
        Topic(
            name="retry",
            says=(
                "A node without `retry` is tried once. With `retry`, a failed attempt is repeated"
                " after a delay that grows. `{}` means three attempts, the second after 2 seconds"
                " and the third after another 4.\n\n"
                "A failure that repetition cannot mend is final: a binding without a value, a"
                " refused or missing record, an answer of 4xx other than 408, 409, 425 and 429."
                " `Retry-After` of an answer takes the place of the delay. All attempts send the"
                " same `Idempotency-Key`."
            ),
            shapes=("Retry",),
        ),
        Topic(
            name="edges",
            says=(
                "An edge is taken when the node it comes `from` ends with the edge's `outcome`,"
                " which is `always` unless it is given. The page of each kind of node tells which"
                " outcomes it has."
            ),
            facts=(
                ("`always`, `success`", "the node has completed; the two mean the same"),
                ("`failure`", "all its attempts have failed"),
                ("`finally`", "the node has completed or failed"),
                ("`true`, `false`", "what a condition gave"),
                ("`case`, `default`", "the case of a switch, named by `caseKey`, or none of them"),
                ("`item`, `done`", "the body of a loop, and what follows its end"),
                ("`approved`, `rejected`, `timeout`", "how a wait has ended"),
            ),
            shapes=("GraphEdge",),
        ),
        Topic(
            name="failures",
            says=(
                "After a failed node only its edges `failure` and `finally` are taken. The nodes"
                " behind them read its `error` and `errorCode`, and beside them what came of it"
                " all the same: after an answer that was not expected, its `status`, `headers`"
                " and `body`. Without such an edge the branch ends, and the run fails.\n\n"
                "`onError` of the graph decides on the other branches when a run fails: `stop`"
                " cancels them, `continue` lets them end. `failureAutomationId` of the graph names"
                " the failure handler: an automation that is started with `{automationId, runId,"
                " nodeId, error, triggerPayload}` when a run fails. Test runs, and the runs of"
                " handlers, start none."
            ),
        ),
        Topic(
            name="variables",
            says=(
                "`variables` of a graph are values by key. A `variable` binding reads one by its"
                " key, an expression as `vars.<key>`. A graph with `variables` may read only"
                " those; a graph without any reads those in the `scope` of a run from a node."
            ),
        ),
        Topic(
            name="test-payloads",
            says=(
                "`testPayloads` are named payloads for test runs. A test run takes the first of"
                " these that there is: `triggerPayload`, the payload that `testPayloadId` names,"
                " the first of `testPayloads`, an empty object. With `simulate`, nodes with side"
                " effects do nothing."
            ),
            shapes=("TestPayload",),
        ),
        Topic(
            name="outputs",
            says=(
                "The page of each kind of node tells its output. A `node` binding reads it by a"
                " path such as `ok.decision`, an expression as `nodes.ok.decision`. A missing key"
                " is null in a binding and an error in an expression, where"
                " `has(nodes.ok.comment)` asks for it and `coalesce(nodes.ok.comment, '')` has"
                " another value in its place.\n\n"
                "`validate` finds reads of keys that no output of that kind has. They are warnings"
                " among the `referenceIssues`, which name the keys there are."
            ),
            steps=(
                Step(
                    request=f"POST {_AUTOMATIONS}/{{automationId}}/validate",
                    body={
                        "graph": {
                            "nodes": [
                                {"id": "ok", "kind": "approval", "config": {"role": "admin"}},
                                {
                                    "id": "thanks",
                                    "kind": "transform",
                                    "config": {
                                        "output": {"by": {"type": "node", "value": "ok.by"}}
                                    },
                                },
                            ],
                            "edges": [{"from": "ok", "to": "thanks", "outcome": "approved"}],
                        }
                    },
                    answers={
                        "valid": True,
                        "referenceIssues": [
                            {
                                "nodeId": "thanks",
                                "message": 'It reads "by" of the output of the node "ok", which'
                                " never has it; known: comment, data, decision, decisions.",
                                "severity": "warning",
                            }
                        ],
                    },
                ),
            ),
        ),
    ),
)
