"""Creating databases from the shipped templates."""

from models.core.access.rules import Actor
from models.data.database_templates.files import find_template
from models.data.database_templates.shapes import NewFromTemplate
from models.data.databases.commands.databases import create_database
from models.data.databases.shapes import CreateDatabase, DatabaseDetail
from models.data.record_templates.commands import create_template
from models.data.record_templates.shapes import CreateRecordTemplate
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


async def create_from_template(
    work: UnitOfWork, actor: Actor, name: str, body: NewFromTemplate
) -> DatabaseDetail:
    """A new database with the fields, views and record templates of a shipped one.

    Raises `NotFoundError` for the template and the parent, `DeniedError` for the parent.
    """
    template = find_template(name)
    if template is None:
        raise NotFoundError("database template")
    described = {
        "label": body.label or template.label,
        "description": template.description,
        "icon": template.icon,
        "parentItemId": body.parent_item_id,
        "order": body.order,
        "fields": template.fields,
        "views": template.views,
    }
    made = await create_database(work, actor, CreateDatabase.model_validate(described))
    for one in template.record_templates:
        described_record = CreateRecordTemplate.model_validate(one)
        await create_template(work, actor, made.id, described_record)
    return made
