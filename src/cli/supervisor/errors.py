"""The reason the platform could not be started, told to the person who started it."""


class StartError(Exception):
    """The message says what is wrong and what to do."""

    retryable = False
