"""Slugs and plans of workspaces."""

import re
import unicodedata
from enum import StrEnum


class Plan(StrEnum):
    """The plan agreed with whoever owns a workspace; it limits nothing."""

    FREE = "free"
    TEAM = "team"
    BUSINESS = "business"
    ENTERPRISE = "enterprise"


def slug_from(name: str) -> str:
    """A slug made of a name: its ASCII letters and digits, joined by hyphens."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:40].strip("-") or "workspace"


def numbered(slug: str, number: int) -> str:
    """`slug-2`, `slug-3`, …; the first is the slug itself."""
    return slug if number == 1 else f"{slug}-{number}"
