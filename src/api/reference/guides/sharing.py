"""Sharing: who sees an item, and links for those without an account."""

from api.reference.guides.steps import Guide, Step, Topic

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
