"""Guides to databases: their fields, records, forms and time entries."""

from api.reference.guides.steps import Guide, Step, Topic

FIELDS = [
    {"label": "Name", "key": "title", "kind": "text", "required": True},
    {"label": "Amount", "kind": "currency", "settings": {"currencyCode": "EUR"}},
    {
        "label": "Stage",
        "kind": "select",
        "options": [{"name": "New"}, {"name": "Offer sent"}],
        "defaultValue": "New",
    },
]
DATABASES = Guide(
    slug="databases",
    says=(
        "A database has fields, which type its records, and views, which show them. It is an item"
        " of the workspace's tree, which says who sees it."
    ),
    topics=(
        Topic(
            name="example",
            says=(
                "A database with its fields, then one more field that computes. Keys are made of"
                " labels where they are not given: `Offer sent` becomes `offer_sent`."
            ),
            steps=(
                Step(
                    request="POST /v1/workspaces/{workspaceId}/databases",
                    body={"label": "Deals", "fields": FIELDS},
                    status=201,
                    answers={"key": "deals"},
                    keeps={"databaseId": "id"},
                ),
                Step(
                    request="POST /v1/databases/{databaseId}/fields",
                    body={
                        "label": "Gross",
                        "kind": "formula",
                        "settings": {"expression": "record.amount * 1.19"},
                    },
                    status=201,
                    answers={"key": "gross"},
                    keeps={"fieldId": "id"},
                ),
                Step(
                    request="PATCH /v1/databases/{databaseId}/fields/{fieldId}",
                    body={"label": "With tax"},
                    says="The key stays: records, filters and formulas know a field by it.",
                    answers={"key": "gross", "label": "With tax"},
                ),
                Step(request="GET /v1/workspaces/{workspaceId}/databases/{databaseId}"),
            ),
        ),
        Topic(
            name="keys",
            says=(
                "A field has a `label` for people and a `key` for everything else. An unknown key"
                " is refused with the keys there are, the nearest first. The field `title` is the"
                " title of each record; a database that is made without it gets it."
            ),
        ),
        Topic(
            name="options",
            says=(
                "A `select`, `multi_select` or `status` field has `options`, each with a `name` and"
                " a `key`, which is made of the name where it is not given. Records store the key."
                " Writes, filters, defaults and imports take the key or the name, however it is"
                " capitalized; a name that two options share is refused. With the setting"
                " `allowCreate` a write makes options that are new."
            ),
            shapes=("CreateOption",),
        ),
        Topic(
            name="relations",
            says=(
                "A `relation` field points at records of the database that its setting"
                " `databaseId` names. With the `cardinality` `one` it holds one record at most."
                " That database gets a field for the way back. `lookup` and `rollup` fields read"
                " the records that a relation points at."
            ),
        ),
    ),
)

_RECORDS = "/v1/databases/{databaseId}/records"
RECORDS = Guide(
    slug="records",
    says=(
        "A record has values in `data`, by field key, and the records that it points at in"
        " `relations`. What the platform computes stands in `computed`, what it writes itself in"
        " `system`."
    ),
    topics=(
        Topic(
            name="example",
            says="Two databases, a record of each, one that points at the other, and a query.",
            steps=(
                Step(
                    request="POST /v1/workspaces/{workspaceId}/databases",
                    body={"label": "Companies"},
                    status=201,
                    keeps={"companiesId": "id"},
                ),
                Step(
                    request="POST /v1/workspaces/{workspaceId}/databases",
                    body={
                        "label": "Offers",
                        "fields": [
                            *FIELDS,
                            {
                                "label": "Company",
                                "kind": "relation",
                                "settings": {"databaseId": "{companiesId}", "cardinality": "one"},
                            },
                        ],
                    },
                    status=201,
                    keeps={"databaseId": "id"},
                ),
                Step(
                    request="POST /v1/databases/{companiesId}/records",
                    body={"title": "Analytical Engines"},
                    status=201,
                    keeps={"companyId": "id"},
                ),
                Step(
                    request=f"POST {_RECORDS}",
                    body={
                        "title": "Ten engines",
                        "data": {"amount": 1200, "stage": "Offer sent"},
                        "relations": {"company": "{companyId}"},
                    },
                    says="An option is named by its key or its name. A relation takes a list of"
                    " ids; one that holds one record at most takes the id alone, too.",
                    status=201,
                    answers={"data": {"amount": 1200, "stage": "offer_sent"}},
                    keeps={"recordId": "id"},
                ),
                Step(
                    request="PATCH /v1/records/{recordId}",
                    body={"data": {"amount": 1500}},
                    says="Values are merged by key, null clears one.",
                    answers={"data": {"amount": 1500, "stage": "offer_sent"}},
                ),
                Step(
                    request=f"POST {_RECORDS}/query",
                    body={
                        "filter": {"field": "stage", "op": "eq", "value": "Offer sent"},
                        "sorts": [{"field": "amount", "direction": "desc"}],
                        "aggregates": [{"field": "amount", "op": "sum", "as": "total"}],
                    },
                    answers={"aggregates": {"total": 1500}},
                ),
            ),
        ),
        Topic(
            name="writing",
            says=(
                "`POST …/records` makes a record, `PATCH /v1/records/{recordId}` changes one,"
                " `POST …/records/batch` does up to 500 of both, all or none. A value that its"
                " field does not take is refused at `data.<key>`. A new record gets the defaults,"
                " and needs the required fields.\n\n"
                "With `If-Match: <updatedAt>` a change is made only to the record that was read:"
                " one that somebody has changed since is a conflict."
            ),
            steps=(
                Step(
                    request=f"POST {_RECORDS}",
                    body={"title": "Five engines", "data": {"Amount": 600}},
                    says="A key that names no field is answered with those that do.",
                    status=400,
                    answers={
                        "details": [
                            {
                                "path": "data.Amount",
                                "message": "is not the key of a field of this database;"
                                " known: amount, title, stage, company",
                            }
                        ]
                    },
                ),
                Step(
                    request=f"POST {_RECORDS}/batch",
                    body={
                        "operations": [
                            {"op": "create", "title": "Five engines", "data": {"amount": 600}},
                            {"op": "update", "recordId": "{recordId}", "data": {"stage": "new"}},
                        ]
                    },
                ),
            ),
        ),
        Topic(
            name="querying",
            says=(
                "`filter` (see Filters) and `search` choose the records, `sorts` their order,"
                " `fields` what is answered of each; `groupBy` and `aggregates` count and sum. A"
                " page has 50 records, or as many as `limit` says, 200 at most. The `cursor` of a"
                " page leads to the next; null says that there is none."
            ),
            shapes=("RecordQuery",),
        ),
        Topic(
            name="deleting",
            says=(
                "`DELETE` puts a record into the trash for 30 days; `POST …/restore` brings it"
                " back. An archived record stays, and is left out of queries unless they say"
                " `includeArchived`."
            ),
            steps=(
                Step(request="DELETE /v1/records/{recordId}"),
                Step(request="POST /v1/records/{recordId}/restore", body={}),
            ),
        ),
    ),
)

FORMS = Guide(
    slug="forms",
    says=(
        "A form asks for fields of a database; an answer becomes a record of it. A public form is"
        " open to whoever knows its address."
    ),
    topics=(
        Topic(
            name="example",
            says="A database for the answers, a public form, and an answer from somebody.",
            steps=(
                Step(
                    request="POST /v1/workspaces/{workspaceId}/databases",
                    body={
                        "label": "Requests",
                        "fields": [
                            {"label": "Mail", "kind": "email"},
                            {
                                "label": "Topic",
                                "kind": "select",
                                "options": [{"name": "Bug"}, {"name": "Praise"}],
                            },
                            {"label": "Steps", "kind": "long_text"},
                        ],
                    },
                    status=201,
                    keeps={"databaseId": "id"},
                ),
                Step(
                    request="POST /v1/workspaces/{workspaceId}/forms",
                    body={
                        "label": "Tell us",
                        "databaseId": "{databaseId}",
                        "public": True,
                        "fields": [
                            {"key": "title", "label": "What is it about?", "required": True},
                            {"key": "topic"},
                            {
                                "key": "steps",
                                "required": True,
                                "visibleIf": {"field": "topic", "op": "eq", "value": "bug"},
                            },
                        ],
                    },
                    says="The `itemId` of a form is its public address.",
                    status=201,
                    keeps={"itemId": "itemId"},
                ),
                Step(
                    request="GET /v1/forms/{itemId}",
                    says="What people see who answer; they need no key.",
                    by="nobody",
                ),
                Step(
                    request="POST /v1/forms/{itemId}/submissions",
                    body={"data": {"title": "It is quick", "topic": "Praise"}},
                    by="nobody",
                    status=201,
                    answers={"confirmation": "Thank you. Your answer has been recorded."},
                ),
            ),
        ),
        Topic(
            name="questions",
            says=(
                "Each question names a field by its `key`. `visibleIf` is a filter over the"
                " answers before it; a hidden question is not required, and an answer to it is"
                " not kept. Without `fields` a form asks for every field that a form can ask for."
                " Other keys of an answer are ignored."
            ),
            shapes=("FormField",),
        ),
        Topic(
            name="closing",
            says=(
                "A form takes answers while `accepting` is true, until `closesAt`, and up to"
                " `maxSubmissions`. A form that is not public is answered by members alone."
            ),
            shapes=("CreateForm",),
        ),
    ),
)

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
