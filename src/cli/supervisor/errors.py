"""The reason the platform could not be started, told to the person who started it."""


class StartError(Exception):
    """The message says what is wrong and what to do."""

    retryable = False


def missing_extra(part: str, extra: str, otherwise: str = "") -> StartError:
    """The error for a part that comes with an extra of our package, and how to install it."""
    return StartError(
        f"{part} is not installed. It comes with the extra `{extra}`: run"
        f" `uv tool install --force 'workspace-platform[{extra}]'`, with the path of the wheel in"
        f" place of the name if you have a wheel{otherwise}."
    )
