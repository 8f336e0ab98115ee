"""The config of a webhook trigger: authentication, deduplication, and the answer.

Sources: interface.md#webhooks; Standard Webhooks, "Verifying webhooks".
"""

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from models.automation.automations.rules.attributes import READABLE, early_problem
from models.automation.automations.rules.graph.shapes import CelExpression, Json
from models.automation.automations.rules.language.filters import filter_problems
from models.automation.automations.rules.language.paths import compile_path
from models.automation.secrets.rules import SecretName
from models.core.base import AbsentNotNull, Input
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import compile_expression
from models.core.http_requests import HeaderName
from models.core.openapi import documented_as

MAX_WAIT_SECONDS = 30
"""The longest a call waits for the answer of its run (interface.md#webhooks)."""
SECRET_HEADER = "X-Webhook-Secret"  # noqa: S105  # a name, not a secret
"""The header that holds the secret with the auth `header`, unless the config says otherwise."""

_PLACEHOLDER = re.compile(r"{[^{}]*}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")


TriggerFilter = Annotated[
    Json | CelExpression, documented_as("Filter", "CelExpression", "PartialConfig")
]


class Signature(Input, AbsentNotNull):
    """The way a call is signed.

    `standard_webhooks` is the specification of that name; the other keys are for `hmac_sha256`:
    the digest of `signedContent` is in `header`, optionally after `sha256=`. With a
    `timestampHeader` the call must also be recent; when that is `header` itself, both are in it as
    `t=…,v1=…`.
    """

    scheme: Literal["standard_webhooks", "hmac_sha256"] = "standard_webhooks"
    header: HeaderName | None = None
    encoding: Literal["hex", "base64"] = "hex"
    timestamp_header: HeaderName | None = None
    signed_content: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    tolerance_seconds: Annotated[int, Field(ge=1, le=86_400)] = 300

    @property
    def content(self) -> str:
        """The signed text, with the placeholders `{body}` and `{timestamp}`."""
        default = "{body}" if self.timestamp_header is None else "{timestamp}.{body}"
        return self.signed_content or default


class Deduplication(Input, AbsentNotNull):
    """Calls with the same key within the window are one.

    A `path` leads into the payload, such as `body.id`, or into its body, such as `id`.
    """

    source: Literal["header", "path", "body_hash"]
    name: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    window_seconds: Annotated[int, Field(ge=1, le=7 * 86_400)] = 86_400


class Webhook(Input, AbsentNotNull):
    """The settings of a webhook trigger beside its kind.

    The secret is the automation's own, or the workspace's secret `secretName`: a password with
    `basic` (any user name), the value of `header` with `header`.
    """

    methods: Annotated[
        list[Literal["GET", "POST", "PUT", "PATCH", "DELETE"]],
        Field(min_length=1, max_length=5, default_factory=lambda: ["POST"]),
    ]
    auth: Literal["signature", "basic", "header", "none"] = "signature"
    header: HeaderName | None = None
    secret_name: SecretName | None = None
    signature: Signature | None = None
    dedupe: Deduplication | None = None
    respond: Literal["immediate", "wait"] = "immediate"
    wait_seconds: Annotated[int, Field(ge=1, le=MAX_WAIT_SECONDS)] = MAX_WAIT_SECONDS
    filter: TriggerFilter | None = None

    @property
    def signing(self) -> Signature:
        """The way calls are signed with the auth `signature`."""
        return self.signature or Signature()


def webhook_problems(webhook: Webhook) -> Iterator[tuple[str, str]]:
    """Reasons not to publish an automation with this webhook: place in the config, sentence."""
    if webhook.signature is not None:
        if webhook.auth != "signature":
            yield "signature", "Only allowed with the auth signature."
        yield from _signature_problems(webhook.signature)
    if webhook.header is not None and webhook.auth != "header":
        yield "header", "Only allowed with the auth header."
    if webhook.secret_name is not None and webhook.auth == "none":
        yield "secretName", "Not allowed with the auth none."
    if webhook.dedupe is not None:
        yield from _dedupe_problems(webhook.dedupe)
    yield from _filter_problems(webhook)


def _signature_problems(signature: Signature) -> Iterator[tuple[str, str]]:
    if signature.scheme == "standard_webhooks":
        for name in ("header", "timestamp_header", "signed_content"):
            if getattr(signature, name) is not None:
                alias = Signature.model_fields[name].alias
                yield f"signature.{alias}", "Only allowed with the scheme hmac_sha256."
        return
    if signature.header is None:
        yield "signature.header", "Required: the name of the header that holds the signature."
    wanted = ["{body}"] if signature.timestamp_header is None else ["{body}", "{timestamp}"]
    if sorted(_PLACEHOLDER.findall(signature.content)) != wanted:
        yield (
            "signature.signedContent",
            "Must hold {body} once, {timestamp} once with a timestampHeader, no other placeholder.",
        )


def _dedupe_problems(dedupe: Deduplication) -> Iterator[tuple[str, str]]:
    if (dedupe.name is None) is not (dedupe.source == "body_hash"):
        yield "dedupe.name", "Required with the sources header and path, and only there."
    elif dedupe.source == "header" and not _HEADER.fullmatch(dedupe.name or ""):
        yield "dedupe.name", "Invalid header name."
    elif dedupe.source == "path":
        try:
            compile_path(dedupe.name or "")
        except BindingError as error:
            yield "dedupe.name", error.message


def _filter_problems(webhook: Webhook) -> Iterator[tuple[str, str]]:
    if isinstance(webhook.filter, dict):
        yield from filter_problems(webhook.filter, variables=READABLE)
    elif webhook.filter is not None:
        problem = early_problem(webhook.filter)
        if problem is not None:
            yield "filter", problem
        elif not compile_expression(webhook.filter).decides:
            yield "filter", "The expression must return true or false."
