"""Reading the shipped templates."""

from models.core.keys import slug
from models.data.database_templates.files import Template, templates
from models.data.database_templates.shapes import DatabaseTemplateShape
from models.data.views.rules.kinds import ViewKind


def list_templates() -> list[DatabaseTemplateShape]:
    """Every template, in the order they are shown."""
    return [_shape(template) for template in templates()]


def _shape(template: Template) -> DatabaseTemplateShape:
    return DatabaseTemplateShape.model_validate(
        {
            "id": template.id,
            "key": template.key,
            "label": template.label,
            "description": template.description,
            "icon": template.icon,
            "category": template.category,
            "fields": [
                {
                    "key": field.get("key") or slug(field["label"], "field"),
                    "label": field["label"],
                    "kind": field["kind"],
                }
                for field in template.fields
            ],
            "views": [
                {"label": view["label"], "kind": view.get("kind", ViewKind.TABLE)}
                for view in template.views
            ],
            "record_templates": [one["label"] for one in template.record_templates],
        }
    )
