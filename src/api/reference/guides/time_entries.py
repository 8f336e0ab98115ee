"""Time entries: clocks and what was written down."""

from api.reference.guides.steps import Guide, Step, Topic

_ENTRIES = "/v1/workspaces/{workspaceId}/time-entries"
TIME = Guide(
    slug="time",
    says=(
        "A time entry is time that a person spends on a record, an item or the workspace. It is"
        " `active`, `paused`, `completed` or `discarded`. Durations are in milliseconds; the clock"
        " is the server's."
    ),
    topics=(
        Topic(
            name="example",
            says="A clock that is started, paused, resumed and completed, and an entry by hand.",
            steps=(
                Step(
                    request=f"POST {_ENTRIES}",
                    body={"targetKind": "workspace", "summary": "Draft the offer"},
                    status=201,
                    answers={"entry": {"status": "active", "mode": "stopwatch"}},
                    keeps={"entryId": "entry.id"},
                ),
                *(
                    Step(
                        request=f"PATCH {_ENTRIES}/{{entryId}}",
                        body={"action": action},
                        answers={"entry": {"status": status}},
                    )
                    for action, status in (
                        ("pause", "paused"),
                        ("resume", "active"),
                        ("complete", "completed"),
                    )
                ),
                Step(
                    request=f"POST {_ENTRIES}",
                    body={
                        "targetKind": "workspace",
                        "startedAt": "2026-01-05T09:00:00Z",
                        "endedAt": "2026-01-05T10:30:00Z",
                    },
                    says="With a beginning and an end the entry is completed from the start.",
                    status=201,
                    answers={"entry": {"status": "completed", "durationMs": 5400000}},
                ),
                Step(request=f"GET {_ENTRIES}/summary?groupBy=user"),
            ),
        ),
        Topic(
            name="modes",
            says=(
                "A `stopwatch` runs until it is completed, a `countdown` for `targetDurationMs`, a"
                " `pomodoro` for `targetDurationMs` or 25 minutes. The last two complete"
                " themselves, and their owner is notified. A `fixed` entry is written down with"
                " its beginning and end."
            ),
            shapes=("StartTimeEntry",),
        ),
        Topic(
            name="actions",
            says=(
                "A person has one running entry in a workspace: a start or a resume completes the"
                ' running one, or is refused with `"onActive": "reject"`. An entry that has ended'
                " cannot be started again; to complete it once more changes nothing. A repeated"
                " `clientMutationId` answers the same entry."
            ),
            facts=(
                ("`pause`", "`active` becomes `paused`"),
                ("`resume`", "`paused` becomes `active`"),
                ("`complete`", "`active` or `paused` becomes `completed`"),
                ("`discard`", "`active` or `paused` becomes `discarded`, and is kept for 30 days"),
            ),
            shapes=("UpdateTimeEntry",),
        ),
    ),
)
