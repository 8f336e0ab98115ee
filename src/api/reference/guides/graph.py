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
        "A node without `retry` is tried once. A graph is nodes and the edges between them; what"
        " stands here holds for a node of any kind. What each kind does, needs and gives is told"
        " in its own page under Nodes."
    ),
    topics=(
        _EXAMPLE,
        Topic(
            name="node",
            says=(
                "A node has an `id`, by which others read its output, a `kind`, and in `config`"
                " what its kind needs. In place of any value of the config a binding may stand;"
                " `input` has bindings that overlay its top-level keys.\n\n"
                "A node runs once all edges that lead to it are decided and at least one of them"
                " is taken; if none is, it is skipped, and so is what follows it alone. Nodes that"
                " no edge leads to begin together, unless `entryNodeIds` names others."
            ),
            facts=(
                ("`timeoutSeconds`", "how long one attempt may take: 300 unless it says otherwise"),
                ("`disabled`", "the node is passed over as if it had succeeded"),
                ("`mock`", "with `enabled`, its output in test runs"),
            ),
            shapes=("Mock",),
        ),
        Topic(
            name="retry",
            says=(
                "A node without `retry` is tried once. With it, a failed attempt is repeated after"
                " a delay that grows. An empty object is three attempts, after 2 and 4 seconds.\n\n"
                "What cannot succeed by repetition is not repeated: a binding without a value, a"
                " refused or missing record, an answer of 4xx other than 408, 409, 425 and 429."
                " `Retry-After` of an answer counts. Every attempt sends the same"
                " `Idempotency-Key`."
            ),
            shapes=("Retry",),
        ),
        Topic(
            name="edges",
            says=(
                "An edge is taken when the node it comes `from` ends with its `outcome`. It is"
                " called `outcome`, and is `always` where it is left out. Which outcomes a node"
                " has depends on its kind and stands in its page."
            ),
            facts=(
                ("`always`, `success`", "the node has completed: both say the same"),
                ("`failure`", "all its attempts have failed"),
                ("`finally`", "either of them"),
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
                "A failed node takes only its edges `failure` and `finally`. There others read its"
                " `error` and `errorCode` in place of an output. Without such an edge its branch"
                " ends, and the run fails with it.\n\n"
                "`onError` says what then becomes of the branches beside it: `stop` cancels them,"
                " `continue` lets them end. `failureAutomationId` names the failure handler: an"
                " automation that is started with `{automationId, runId, nodeId, error,"
                " triggerPayload}` when a run fails. It is not started for test runs, nor for"
                " failures of handlers."
            ),
        ),
        Topic(
            name="variables",
            says=(
                "`variables` of a graph are values by key. A `variable` binding gives one, and"
                " expressions read them as `vars`. A graph that has some has all it reads; a run"
                " from a node may bring others in its `scope`."
            ),
        ),
        Topic(
            name="test-payloads",
            says=(
                "`testPayloads` are named payloads for test runs. A test run takes"
                " `triggerPayload`, else the one that `testPayloadId` names, else the first, else"
                " an empty object. With `simulate` nodes with side effects do nothing."
            ),
            shapes=("TestPayload",),
        ),
        Topic(
            name="outputs",
            says=(
                "What a node gives stands in the page of its kind. A `node` binding reads it by a"
                " path such as `ok.decision`, an expression as `nodes.ok.decision`. A key that is"
                " not there is null for a binding and an error for an expression:"
                " `has(nodes.ok.comment)` asks, `coalesce(nodes.ok.comment, '')` falls back.\n\n"
                "A read of a key that no output of that kind has is a warning among the"
                " `referenceIssues`, which names the keys there are."
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
