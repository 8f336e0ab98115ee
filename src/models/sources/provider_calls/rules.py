"""What a provider can be asked while somebody waits."""

from enum import StrEnum


class CallKind(StrEnum):
    BROWSE = "browse"
    READ = "read"
    TEST = "test"
