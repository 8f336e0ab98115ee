"""The guide to incidents and alert rules: failures that are told once, and what else is watched."""

from api.reference.guides.runs import ENABLED, WORKSPACE
from api.reference.guides.steps import Guide, Step, Topic

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
