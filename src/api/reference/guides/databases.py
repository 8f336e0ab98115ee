"""Databases: their fields, options and layout."""

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
