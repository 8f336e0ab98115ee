"""The kinds of calls to a provider while somebody waits."""

from enum import StrEnum


class CallKind(StrEnum):
    BROWSE = "browse"
    READ = "read"
    TEST = "test"
