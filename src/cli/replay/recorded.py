"""Outside calls that are answered by what was recorded of them; nothing leaves the machine."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from typing_extensions import override

from models.automation.automation_runs.errors import NodeError
from models.core.base import JsonObject
from runtime.addresses import Address
from runtime.errors import PlatformError
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundError, ResponseTooLargeError
from runtime.outbound.exchange import Sink
from runtime.outbound.mail import Mail, MailClient, Receipt, Refusal
from runtime.outbound.mail_server import MailServer
from runtime.outbound.messages import OutboundRequest, OutboundResponse
from runtime.outbound_policy import OutboundPolicy


class NotRecordedError(OutboundError):
    """No answer was kept of a call that is made now."""

    code = "not_recorded"

    def __init__(self) -> None:
        super().__init__("No answer was recorded for this call.")


class Answer:
    """The record of the call of a node or a step: its output, or its failure."""

    def __init__(
        self, output: JsonObject | None, error_code: str | None, error: str | None
    ) -> None:
        self.output = output or {}
        self._failure = None if error_code is None else (error_code, error or error_code)
        self.is_missing = False
        """True once a call found nothing that was recorded."""

    def response(self, url: str) -> OutboundResponse:
        """The answer of an HTTP server. Raises OutboundError."""
        is_kept = "status" in self.output and self.output.get("file") is None
        if not is_kept or (self._has_failed and self.output.get("body") is None):
            self.fail()
        headers: Mapping[str, str] = self.output.get("headers") or {}
        response = OutboundResponse(
            status=self.output["status"], headers=headers, body=b"", bytes_received=0, final_url=url
        )
        return replace(response, body=_bytes(response, self.output))

    @property
    def _has_failed(self) -> bool:
        return self._failure is not None and _is_of_call(self._failure[0])

    def fail(self) -> NoReturn:
        """Raise the failure of the call, if that is what was recorded, else NotRecordedError."""
        if self._failure is not None and self._has_failed:
            raise _failed(*self._failure, self.output)
        self.is_missing = True
        raise NotRecordedError


class RecordedClient(OutboundClient):
    """Answers HTTP calls, and refuses calls of other protocols."""

    def __init__(self, policy: OutboundPolicy, answer: Answer) -> None:
        super().__init__(policy)
        self._recorded = answer

    @override
    async def send(self, request: OutboundRequest, sink: Sink | None = None) -> OutboundResponse:
        response = self._recorded.response(request.url)
        if sink is not None:
            await sink(response.body)
        return response

    @override
    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        return self._recorded.fail()


class RecordedMail(MailClient):
    """Answers for a mail server."""

    def __init__(self, server: MailServer, policy: OutboundPolicy, answer: Answer) -> None:
        super().__init__(server, policy)
        self._recorded = answer

    @override
    async def send(self, mail: Mail) -> Receipt:
        output = self._recorded.output
        if "messageId" not in output:
            self._recorded.fail()
        refused = [Refusal(one["address"], one["status"]) for one in output["refused"]]
        return Receipt(output["accepted"], refused)


def mail_server(settings: MailServer | None, answer: Answer) -> MailServer | None:
    """The server of the settings, or one that knows the sender of the mail that was accepted."""
    domain = str(answer.output.get("messageId", "")).strip("<>").rpartition("@")[2]
    if settings is None and domain:
        return MailServer(host=domain, port=25, sender=f"recorded@{domain}")
    return settings


def _bytes(response: OutboundResponse, output: JsonObject) -> bytes:
    """The body that was read as what the output has."""
    body, encoding = output.get("body"), output.get("bodyEncoding")
    if body is None and encoding is None:
        return b""
    if encoding == "base64":
        return base64.b64decode(str(body))
    if encoding == "text":
        return str(body).encode(response.content_type.charset or "utf-8", "replace")
    return json.dumps(body).encode()


def _is_of_call(code: str) -> bool:
    """True for the code of a failure by which a call has no answer."""
    return code.startswith("smtp_") or code in _by_code()


def _by_code() -> Mapping[str, type[OutboundError]]:
    """The kinds of failures of calls, the most general of each code."""
    kinds: dict[str, type[OutboundError]] = {}
    waiting: list[type[OutboundError]] = [OutboundError]
    while waiting:
        kind = waiting.pop(0)
        kinds.setdefault(kind.code, kind)
        waiting += kind.__subclasses__()
    return kinds


def _failed(code: str, message: str, output: JsonObject) -> PlatformError:
    """The failure as it was raised, with the message that was shown."""
    kind = _by_code().get(code)
    if kind is None:
        return NodeError(code, message)
    error = kind.__new__(kind)
    OutboundError.__init__(error, message)
    if isinstance(error, ResponseTooLargeError) and "status" in output:
        error.head = output["status"], output["headers"]
    return error
