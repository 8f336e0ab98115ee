"""Forms of pages: their shapes and demands, members and connections to choose, and pauses."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from starlette.responses import Response

from api.console.entered import Form
from api.console.rendering import is_htmx, see_other, toast
from api.kernel.operation import Access
from api.kernel.routing import ApiRequest
from models.core.access.rules import Scope
from models.core.base import Id, Input, JsonObject
from models.people.members import list_members
from models.people.users import display_name
from models.sources.connections.store import get_connection, list_connections
from runtime.errors import ValidationError
from runtime.strict_json import StrictJsonError, parse

S = TypeVar("S", bound=Input)
T = TypeVar("T")


def paged(access: Access) -> Access:
    """The demands of an operation, for the page that does the same in a session."""
    return replace(access, credential="browser", page=True, cookie=False)


def number_of(text: str) -> int | str | None:
    """The number that a field has; a text that is none is refused by the shape."""
    return int(text) if text.isdecimal() and len(text) < 10 else text or None


def pressed_row(action: str) -> tuple[str, int]:
    """The verb and the place of a button of a row, such as `up.3`; -1 for no place."""
    verb, _, place = action.partition(".")
    return verb, int(place) if place.isdecimal() and len(place) < 5 else -1


def moved_row(rows: Sequence[T], verb: str, place: int) -> list[T]:
    """The rows with the one at a place moved `up` or `down`; as they were for another verb."""
    others = list(rows)
    if verb in {"up", "down"} and 0 <= place < len(others):
        row = others.pop(place)
        others.insert(max(0, place - 1 if verb == "up" else place + 1), row)
    return others


def read_json(name: str, text: str) -> object:
    """The JSON that a person wrote into a field. Raises ValidationError."""
    try:
        return parse(text.encode())
    except StrictJsonError as error:
        message = error.message.replace("The body", "The text")
        raise ValidationError.at(name, message) from None


def read_object(name: str, text: str) -> JsonObject:
    """The JSON object that a person wrote into a field. Raises ValidationError."""
    value = read_json(name, text)
    if not isinstance(value, dict):
        raise ValidationError.at(name, 'must be a JSON object, such as {"name": "Ada"}')
    return value


def done(request: ApiRequest, message: str, path: str) -> Response:
    """The answer of a form that was taken: a message in the page, or the page as it is now."""
    return toast(message, "success") if is_htmx(request) else see_other(path)


_MOST = 100


async def member_names(request: ApiRequest, users: Collection[Id] = ()) -> dict[str, str]:
    """The names of members, and of some `users`, by their ids.

    Who may not see the members is shown the users alone.
    """
    names: dict[str, str] = {}
    if Scope.MEMBERS_READ in request.actor.scopes:
        turn = request.page("console members", _MOST, None)
        listed = await list_members(request.work, request.actor, turn)
        names = {str(one.user_id): one.name or one.email or "A member" for one in listed.members}
    for user_id in users:
        if str(user_id) not in names:
            names[str(user_id)] = await display_name(request.work, user_id)
    return names


async def connection_names(
    request: ApiRequest, connection_ids: Collection[Id] = ()
) -> dict[str, str]:
    """The names of the newest connections, and of some others that the person sees, by their ids.

    Raises NotFoundError for one of these that they do not see.
    """
    turn = request.page("console connections", _MOST, None)
    listed = await list_connections(request.work, request.actor, turn)
    names = {str(one.id): one.label for one in listed.connections}
    for connection_id in connection_ids:
        if str(connection_id) not in names:
            one = await get_connection(request.work, request.actor, connection_id)
            names[str(connection_id)] = one.label
    return names


class Pause(Form):
    """The reason, which is shown wherever something waits."""

    reason: str = ""

    @property
    def values(self) -> JsonObject:
        """The body of the operation."""
        return {"reason": self.reason}


class Resume(Form):
    """Releases a minute; without a number all are released at once."""

    rate: str = ""

    @property
    def values(self) -> JsonObject:
        """The body of the operation."""
        return {"rate": number_of(self.rate)}
