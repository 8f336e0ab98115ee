"""Guides to people: who sees an item, links for those without an account, and experiments."""

from api.reference.guides.steps import Guide, Step, Topic
from models.people.experiments.rules import TRANSITIONS, WHY_IGNORED

_LINKS = "/v1/workspaces/{workspaceId}/items/{itemId}/share-links"
SHARING = Guide(
    slug="sharing",
    says=(
        "Members see what their role lets them see, unless an item is restricted. A share link"
        " shows an item and what is below it to whoever has its token."
    ),
    topics=(
        Topic(
            name="example",
            says="A page, a link to it, and a visitor who opens it and comes back.",
            steps=(
                Step(
                    request="POST /v1/items",
                    body={"kind": "page", "title": "Price list"},
                    status=201,
                    keeps={"itemId": "item.id"},
                ),
                Step(
                    request=f"POST {_LINKS}",
                    body={"maxUses": 100},
                    says="Its `shareUrl`, below the platform's own, opens in a browser as it is."
                    " The token is answered here and never again.",
                    status=201,
                    answers={"shareUrl": "/v1/share/{shareLinkId}#{token}"},
                    keeps={"shareLinkId": "id", "token": "token"},
                ),
                Step(
                    request="GET /v1/share/{shareLinkId}",
                    headers={"X-Share-Token": "{token}"},
                    says="The token takes one of the uses and gives a session for an hour.",
                    by="nobody",
                    keeps={"session": "session"},
                ),
                Step(
                    request="GET /v1/share/{shareLinkId}",
                    headers={"X-Share-Session": "{session}"},
                    by="nobody",
                ),
                Step(request=f"GET {_LINKS}"),
                Step(
                    request=f"DELETE {_LINKS}/{{shareLinkId}}",
                    says="A revoked link stops at once, for visitors with a session too.",
                ),
                Step(
                    request="GET /v1/share/{shareLinkId}",
                    headers={"X-Share-Session": "{session}"},
                    by="nobody",
                    status=404,
                    answers={"error": "not_found"},
                ),
            ),
        ),
        Topic(
            name="links",
            says=(
                "A link may end at `expiresAt` or after `maxUses`; files are downloaded only with"
                " `allowDownload`. A link that is unknown, revoked, expired or used up answers"
                " 404, and never says which of them it is. People open the `shareUrl` of a new link"
                " in a browser: its `url` with the token behind a `#`."
            ),
            shapes=("CreateShareLink",),
        ),
        Topic(
            name="access",
            says=(
                "`accessMode` of an item is `open`, where roles decide, or `restricted`, where only"
                " those with a grant on it get in. Levels are `view`, `comment`, `run`, `edit` and"
                " `manage`; each includes those before it. `PUT /v1/items/{itemId}/access` sets"
                " mode and grants together; owners and administrators always manage."
            ),
        ),
    ),
)

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
