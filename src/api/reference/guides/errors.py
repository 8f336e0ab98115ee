"""Errors: every code, its status, when it is answered and what to do, from the error classes."""

from collections.abc import Iterator, Mapping

import runtime.errors
from api.reference.guides.steps import Guide, Step, Topic
from runtime.errors import PlatformError

_UNKNOWN_ID = "0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f"
_DATABASES = "/v1/workspaces/{workspaceId}/databases"
_AUTOMATIONS = "/v1/workspaces/{workspaceId}/automations"
_GRAPH = {"nodes": [{"id": "end", "kind": "stop", "config": {}}]}
_MUTATION = {"Idempotency-Key": "deals-of-2026"}

_STEPS: Mapping[str, tuple[Step, ...]] = {
    "validation_error": (
        Step(
            request=f"POST {_DATABASES}",
            body={"Label": "Deals"},
            status=400,
            answers={
                "_tag": "ApiValidationError",
                "error": "validation_error",
                "status": 400,
                "details": [
                    {"path": "label", "message": "This key is required."},
                    {"path": "Label"},
                ],
            },
        ),
    ),
    "unauthorized": (Step(request="GET /v1/me", by="nobody", status=401),),
    "denied": (Step(request="GET /v1/admin/experiments", status=403, answers={"error": "denied"}),),
    "not_found": (
        Step(request=f"GET /v1/items/{_UNKNOWN_ID}", status=404),
        Step(
            request=f"GET {_DATABASES}/{_UNKNOWN_ID}/records",
            says="The path itself does not exist here.",
            status=404,
        ),
    ),
    "method_not_allowed": (Step(request="DELETE /v1/me", status=405),),
    "conflict": (
        Step(
            request=f"POST {_DATABASES}",
            body={"label": "Conflicts"},
            status=201,
            keeps={"databaseId": "id"},
        ),
        Step(
            request="POST /v1/databases/{databaseId}/records",
            body={"title": "One"},
            status=201,
            keeps={"recordId": "id"},
        ),
        Step(
            request="PATCH /v1/records/{recordId}",
            headers={"If-Match": "2020-01-01T00:00:00.000Z"},
            body={"title": "Two"},
            status=409,
            answers={"error": "conflict"},
        ),
    ),
    "run_error": (
        Step(
            request=f"POST {_AUTOMATIONS}",
            body={"label": "Draft", "triggerConfig": {"kind": "manual"}, "graph": _GRAPH},
            status=201,
            keeps={"automationId": "id"},
        ),
        Step(
            request=f"POST {_AUTOMATIONS}/{{automationId}}/run",
            body={},
            status=409,
            answers={"error": "run_error"},
        ),
    ),
    "conflicting_mutation": (
        Step(request=f"POST {_DATABASES}", headers=_MUTATION, body={"label": "One"}, status=201),
        Step(
            request=f"POST {_DATABASES}",
            headers=_MUTATION,
            body={"label": "Another"},
            status=422,
            answers={"error": "conflicting_mutation"},
        ),
    ),
}


def _classes() -> Iterator[type[PlatformError]]:
    for one in vars(runtime.errors).values():
        if isinstance(one, type) and issubclass(one, PlatformError) and one is not PlatformError:
            yield one


def _topic(one: type[PlatformError]) -> Topic:
    headers = ", ".join(f"`{name}: {value}`" for name, value in one.headers.items())
    facts = [("Status", f"`{one.status}`"), ("`_tag`", f"`{one.tag}`"), ("What to do", one.advice)]
    if headers:
        facts.append(("Headers", headers))
    return Topic(
        name=one.code,
        says=" ".join((one.__doc__ or "").split()),
        facts=facts,
        steps=_STEPS.get(one.code, ()),
    )


ERRORS = Guide(
    slug="errors",
    says=(
        "A refusal has the keys `_tag`, `error`, `message` and `status`; a validation error has"
        " `details`, too: a `path` in the body and a `message` for each thing that is wrong."
        " `error` is the code for programs, `message` a sentence for people. Name `X-Request-Id`"
        " when you ask whoever runs the platform. Repeat a request that was answered with 409"
        " `in_progress`, 429 or 5xx: after `Retry-After`, else after 0.5 seconds, twice as long"
        " each time, six times at most."
    ),
    topics=[_topic(one) for one in _classes()],
)
