"""Forms: questions whose answers become records."""

from api.reference.guides.steps import Guide, Step, Topic

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
