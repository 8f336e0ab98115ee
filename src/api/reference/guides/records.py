"""Records: writing, reading and querying them."""

from api.reference.guides.databases import FIELDS
from api.reference.guides.steps import Guide, Step, Topic

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
