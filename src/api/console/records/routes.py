"""The page of a record, and its actions: write, comment, archive, delete."""

from collections import Counter
from dataclasses import replace

from starlette.responses import Response

from api.console.forms import Form, body_of, done, paged
from api.console.records.cells import cells_of, legend_of
from api.console.records.changes import in_words
from api.console.records.choosing import BEFORE_ID
from api.console.records.fields import shown_fields
from api.console.records.files import attachments
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import ApiRequest
from api.routers.data import record_comments, records
from models.data.databases.queries import get_database
from models.data.record_comments.commands import create_comment
from models.data.record_comments.queries import list_comments
from models.data.record_comments.shapes import CreateRecordComment
from models.data.record_exports.queries import names_of
from models.data.records.commands import records as commands
from models.data.records.queries.execution import QueryTooSlowError
from models.data.records.queries.history import list_history
from models.data.records.queries.records import get_record
from models.data.records.queries.search import choices

router = page_router()

_RECORD = records.RECORD.removeprefix("/v1")
_RECORDS = records.RECORDS.removeprefix("/v1")
_SHOWN_CHANGES = 20
_SHOWN_COMMENTS = 100
_SUGGESTED = 10
_LONGEST_TEXT = 200


class Comment(Form):
    """The words of a comment."""

    body: str


@router.get(_RECORD, access=paged(records.READ))
async def get_page(request: ApiRequest) -> Response:
    """Look at a record: its values, comments and history."""
    work, actor, record_id = request.work, request.actor, request.ids["recordId"]
    record = await get_record(work, actor, record_id)
    database = await get_database(work, actor, record.database_id)
    specs = await shown_fields(request, record.database_id)
    legend = await legend_of(work, actor, [record], specs)
    comments = await list_comments(
        work, actor.workspace_id, record_id, request.page("comments", _SHOWN_COMMENTS, None)
    )
    history = await list_history(
        work, actor, record_id, request.page("history", _SHOWN_CHANGES, None)
    )
    people = {str(one.author_user_id) for one in comments.comments}
    people |= {str(one.actor_user_id) for one in history.changes if one.actor_user_id}
    shell = await shell_of(request)
    return page(
        request,
        "record.html",
        shell,
        record=record,
        database=database,
        values=list(zip(specs, cells_of(record, specs, legend, whole=True), strict=True)),
        files={spec.key: held for spec, held in await attachments(request, specs, record)},
        changes=in_words(history.changes, specs, legend),
        comments=comments.comments,
        names=await names_of(work, actor.workspace_id, people),
        call=curl(shell.base, "GET", f"/v1/records/{record_id}"),
    )


# The bound on its time needs a transaction.
@router.get(f"{_RECORDS}/choices", access=paged(replace(records.READ_ALL, writes=True)))
async def get_choices(request: ApiRequest, q: str = "") -> Response:
    """Suggest records of a database by a part of their titles, for the forms of relations."""
    text = q.strip()[:_LONGEST_TEXT]
    place = request.work, request.actor, request.ids["databaseId"]
    try:
        titles = await choices(*place, text, _SUGGESTED) if text else {}
    except QueryTooSlowError:
        titles = {}
    shell = await shell_of(request)
    several = {title for title, count in Counter(titles.values()).items() if count > 1}
    return page(request, "choices.html", shell, titles=titles, several=several, before=BEFORE_ID)


@router.post(f"{_RECORD}/comments", access=paged(record_comments.COMMENTING))
async def comment(request: ApiRequest, body: Comment) -> Response:
    """Comment on a record."""
    record_id = request.ids["recordId"]
    words = body_of(CreateRecordComment, {"body": body.body})
    await create_comment(request.work, request.actor, record_id, words)
    return see_other(f"/records/{record_id}#comments")


@router.post(f"{_RECORD}/archive", access=paged(records.WRITE))
async def archive(request: ApiRequest) -> Response:
    """Archive a record."""
    record_id = request.ids["recordId"]
    await commands.archive_record(request.work, request.actor, record_id)
    return done(request, "The record is archived.", f"/records/{record_id}")


@router.post(f"{_RECORD}/restore", access=paged(records.WRITE))
async def restore(request: ApiRequest) -> Response:
    """Bring a record back from the archive."""
    record_id = request.ids["recordId"]
    await commands.restore_record(request.work, request.actor, record_id)
    return done(request, "The record is back.", f"/records/{record_id}")


@router.post(f"{_RECORD}/delete", access=paged(records.WRITE))
async def delete(request: ApiRequest) -> Response:
    """Put a record into the trash, and lead to its database."""
    record = await commands.delete_record(request.work, request.actor, request.ids["recordId"])
    return see_other(f"/workspaces/{record.workspace_id}/databases/{record.database_id}")
