"""Every template that is shipped, in the order they are shown."""

from models.data.database_templates.rules.business import (
    CONTACTS,
    CONTENT_CALENDAR,
    INVENTORY,
    READING_LIST,
)
from models.data.database_templates.rules.description import Template
from models.data.database_templates.rules.work import BUG_TRACKER, MEETING_NOTES, PROJECTS, TASKS

TEMPLATES = (
    TASKS,
    PROJECTS,
    CONTACTS,
    BUG_TRACKER,
    CONTENT_CALENDAR,
    MEETING_NOTES,
    INVENTORY,
    READING_LIST,
)

_BY_NAME = {name: one for one in TEMPLATES for name in (one.key, str(one.id))}


def find_template(name: str) -> Template | None:
    """The template of this key or id."""
    return _BY_NAME.get(name)
