"""Experiments: variants, who gets which, and what is counted."""

from api.reference.guides.steps import Guide, Step, Topic
from models.people.experiments.rules import TRANSITIONS, WHY_IGNORED

EXPERIMENTS = Guide(
    slug="experiments",
    says=(
        "An experiment gives each user, workspace or device one of its variants and counts what"
        " they then do. Platform administrators make experiments; applications ask for variants"
        " and record events with any key."
    ),
    topics=(
        Topic(
            name="example",
            says="An experiment from its draft to its end, and an application that takes part.",
            steps=(
                Step(
                    request="POST /v1/admin/experiments",
                    body={
                        "name": "Short sign-up",
                        "targetType": "flag",
                        "flagKey": "short_sign_up",
                        "primaryMetric": "signed_up",
                        "variants": [
                            {"id": "long", "label": "As it is", "split": 50},
                            {"id": "short", "label": "Short", "split": 50},
                        ],
                    },
                    by="administrator",
                    status=201,
                    answers={"status": "draft"},
                    keeps={"experimentId": "id"},
                ),
                *(
                    Step(
                        request="PATCH /v1/admin/experiments/{experimentId}",
                        body={"status": status},
                        by="administrator",
                        answers={"status": status},
                    )
                    for status in ("scheduled", "running")
                ),
                Step(
                    request="POST /v1/experiments/assign",
                    body={"flagKeys": ["short_sign_up"]},
                    answers={"assignments": [{"flagKey": "short_sign_up"}]},
                ),
                Step(
                    request="POST /v1/experiments/events",
                    body={
                        "events": [
                            {"flagKey": "short_sign_up", "event": "exposure"},
                            {"flagKey": "short_sign_up", "event": "signed_up"},
                            {"flagKey": "short_signup", "event": "exposure"},
                        ]
                    },
                    says="Each event says whether it is counted, and if not, why.",
                    answers={
                        "recorded": 2,
                        "ignored": 1,
                        "results": [
                            {"recorded": True},
                            {"recorded": True},
                            {"recorded": False, "reason": "not_running"},
                        ],
                    },
                ),
                Step(
                    request="PATCH /v1/admin/experiments/{experimentId}",
                    body={"status": "completed", "winner": "short"},
                    says="From now on everybody of the audience gets the winner.",
                    by="administrator",
                    answers={"status": "completed"},
                ),
                Step(
                    request="PATCH /v1/admin/experiments/{experimentId}",
                    body={"status": "archived"},
                    by="administrator",
                ),
            ),
        ),
        Topic(
            name="states",
            says=(
                "`PATCH` with `status` changes the status, as this list allows; another change is"
                " a conflict, which names the possible ones. A new experiment is a draft or"
                " scheduled. It starts at its `startedAt` and is completed at its `endsAt`. One"
                " without `endsAt` is completed with a `winner`."
            ),
            facts=tuple(
                (f"`{state}`", ", ".join(f"`{one}`" for one in sorted(following)) or "nothing")
                for state, following in TRANSITIONS.items()
            ),
        ),
        Topic(
            name="events",
            says=(
                "`exposure` says that a user, workspace or device has met its variant;"
                " `conversion` or the name of the primary metric, that it did what you hope for;"
                " `error` or the name of the guardrail metric, that something failed. Each counts"
                " once for each of them. The answer tells of each event that is not counted why:"
            ),
            facts=tuple((f"`{reason}`", says) for reason, says in WHY_IGNORED.items()),
            shapes=("ExperimentEvent",),
        ),
    ),
)
