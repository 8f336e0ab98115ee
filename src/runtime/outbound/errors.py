"""Failures of an outbound call: a stable code, and whether trying again can help.

Messages name the host and nothing else of the request: paths, queries and headers carry secrets.
"""

from collections.abc import Mapping

from runtime.errors import UpstreamError


class OutboundError(UpstreamError):
    """A call that left the platform, or was not allowed to."""

    retryable = False


class InvalidUrlError(OutboundError):
    """The URL is not one the platform calls: scheme, credentials, host or port."""

    code = "invalid_url"


class InvalidRequestError(OutboundError):
    """The method, a header or the body cannot be sent as HTTP."""

    code = "invalid_request"


class OutboundBlockedError(OutboundError):
    """The host's address is not on the public internet, and no setting allows it."""

    code = "outbound_blocked"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"{host} is not a public address. An operator can allow it in WORKSPACE_OUTBOUND_ALLOW."
        )


class OwnListenerError(OutboundBlockedError):
    """The platform itself listens there."""

    def __init__(self, host: str, port: int) -> None:
        OutboundError.__init__(
            self, f"Port {port} of {host} belongs to the platform and can't be called."
        )


class ConnectionFailedError(OutboundError):
    """No connection: one message for unknown names, closed and filtered ports and TLS refusals,
    so that the platform does not serve as a port scanner.
    """

    code = "connection_failed"
    retryable = True

    def __init__(self, host: str) -> None:
        super().__init__(f"Can't connect to {host}. Check its name, port and certificate.")


class OutboundTimeoutError(OutboundError):
    """Connected, but the answer was not complete within its time."""

    code = "timeout"
    retryable = True

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} timed out.")


class InvalidResponseError(OutboundError):
    """The answer broke off, or is not HTTP."""

    code = "invalid_response"
    retryable = True

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} returned an incomplete HTTP response.")


class ResponseTooLargeError(OutboundError):
    """The answer's headers or its decoded body pass the cap.

    `head` is the status and the headers of an answer whose body does.
    """

    code = "too_large"

    def __init__(self, host: str, part: str, limit: int) -> None:
        super().__init__(f"The {part} of the response of {host} is larger than {limit} bytes.")
        self.head: tuple[int, Mapping[str, str]] | None = None


class UnknownCodingError(OutboundError):
    """The body is compressed in a way that the client did not ask for; `head` as above."""

    code = "invalid_body"

    def __init__(self, host: str, coding: str) -> None:
        super().__init__(
            f"{host} compressed the response as {coding}, which can't be read."
            " Only gzip and deflate can."
        )
        self.head: tuple[int, Mapping[str, str]] | None = None


class TooManyRedirectsError(OutboundError):
    code = "too_many_redirects"

    def __init__(self, host: str, limit: int) -> None:
        super().__init__(f"{host} redirected more than {limit} times.")


class InvalidBodyError(OutboundError):
    """The body is not what its content type says."""

    code = "invalid_body"
