"""The channels on which release notices are shown (interface, Release-notice state)."""

from enum import StrEnum


class ReleaseChannel(StrEnum):
    WEB = "web"
    MOBILE = "mobile"
