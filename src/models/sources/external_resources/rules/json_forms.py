"""Our own description of a form as JSON, for providers that have none (docs/integrations.md).

    {"title": "Feedback", "description": "…", "questions": [
        {"label": "Your name", "kind": "text", "required": true, "help": "…"},
        {"label": "Topics", "kind": "multi_select", "options": ["Food", "Service"]}]}

`kind` is that of the field which keeps the answers; a question of another kind is left out.
"""

from models.core.base import JsonObject
from models.data.fields.rules.kinds import FieldKind
from models.sources.external_resources.rules.forms import FormQuestion, HostedForm, NoFormError

MIME_TYPE = "application/vnd.workspace.form+json"

_KINDS = frozenset(kind.value for kind in FieldKind)


def json_form(document: object) -> HostedForm:
    """The content of a form. Raises NoFormError for a document that is none."""
    if not isinstance(document, dict) or not isinstance(document.get("questions"), list):
        raise NoFormError("The document has no list of questions.")
    asked = [one for one in document["questions"] if isinstance(one, dict)]
    return HostedForm(
        title=_text(document.get("title")) or "",
        description=_text(document.get("description")),
        questions=[_question(one) for one in asked],
    )


def _question(asked: JsonObject) -> FormQuestion:
    kind, options = asked.get("kind", "text"), asked.get("options")
    names = [one for one in options if isinstance(one, str)] if isinstance(options, list) else []
    return FormQuestion(
        label=_text(asked.get("label")) or "Question",
        kind=FieldKind(kind) if isinstance(kind, str) and kind in _KINDS else None,
        required=asked.get("required") is True,
        help=_text(asked.get("help")),
        options=names,
    )


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
