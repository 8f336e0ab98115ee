"""Roles, scopes and levels (interface.md#roles)."""

import itertools
import uuid

from models.core.access.rules import (
    GRANTABLE_SCOPES,
    ROLE_SCOPES,
    Level,
    Placement,
    Principal,
    PrincipalType,
    Role,
    Scope,
    level_on,
)


def test_there_are_49_scopes_and_six_roles() -> None:
    assert len(Scope) == 49
    assert set(ROLE_SCOPES) == set(Role)
    assert ROLE_SCOPES[Role.OWNER] == set(Scope)
    assert ROLE_SCOPES[Role.OWNER] - ROLE_SCOPES[Role.ADMIN] == {
        Scope.WORKSPACE_DELETE,
        Scope.BILLING_MANAGE,
    }


def test_each_role_has_what_the_weaker_ones_have() -> None:
    strongest_first = list(Role)
    for stronger, weaker in itertools.pairwise(strongest_first):
        assert ROLE_SCOPES[weaker] < ROLE_SCOPES[stronger]


def test_a_key_has_its_scopes_within_the_role() -> None:
    scopes = frozenset({Scope.RECORDS_READ, Scope.RECORDS_WRITE})
    key = Principal(
        type=PrincipalType.API_KEY, id=uuid.uuid4(), user_id=uuid.uuid4(), key_scopes=scopes
    )
    assert key.effective_scopes(Role.EDITOR) == scopes
    assert key.effective_scopes(Role.VIEWER) == {Scope.RECORDS_READ}
    assert key.effective_scopes(Role.GUEST) == set()


def test_owners_and_administrators_manage_what_is_restricted() -> None:
    placement = Placement(uuid.uuid4(), restricted=True)
    levels = {role: level_on(placement, role) for role in Role}
    assert levels.pop(Role.OWNER) == levels.pop(Role.ADMIN) == Level.MANAGE
    assert set(levels.values()) == {Level.NONE}


def test_a_grant_adds_to_the_role_and_never_takes_away() -> None:
    granted = Placement(uuid.uuid4(), granted=Level.COMMENT)
    assert level_on(granted, Role.GUEST) == level_on(granted, Role.VIEWER) == Level.COMMENT
    assert level_on(granted, Role.EDITOR) == Level.EDIT
    restricted = Placement(uuid.uuid4(), restricted=True, granted=Level.COMMENT)
    assert level_on(restricted, Role.EDITOR) == Level.COMMENT


def test_guests_may_use_what_grants_can_open_and_show_only_their_role() -> None:
    user = uuid.uuid4()
    session = Principal(type=PrincipalType.SESSION, id=user, user_id=user)
    assert session.effective_scopes(Role.GUEST) == {Scope.WORKSPACE_READ}
    assert session.usable_scopes(Role.GUEST) == GRANTABLE_SCOPES | {Scope.WORKSPACE_READ}
    assert session.usable_scopes(Role.VIEWER) == session.effective_scopes(Role.VIEWER)
