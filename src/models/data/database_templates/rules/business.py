"""Templates for customers, content, stock and reading."""

from models.data.database_templates.rules.description import Template, select, status, tags

CONTACTS = Template(
    key="contacts",
    label="Contacts",
    description="People and companies you do business with, and where each deal stands.",
    icon="🤝",
    category="sales",
    fields=[
        {"label": "Name", "key": "title", "kind": "text"},
        {"label": "Company", "kind": "text"},
        {"label": "E-mail", "key": "email", "kind": "email"},
        {"label": "Phone", "kind": "phone"},
        status(
            "Stage",
            todo=["Lead", "Contacted"],
            doing=["Proposal", "Negotiation"],
            done=["Won", "Lost"],
        ),
        {"label": "Value", "kind": "currency", "settings": {"precision": 2, "min": 0}},
        {"label": "Owner", "kind": "person"},
        {"label": "Last contact", "kind": "date"},
        {"label": "Address", "kind": "long_text"},
        tags("Tags", "Customer", "Partner", "Supplier"),
    ],
    views=[
        {"label": "All contacts", "manifest": {"sorts": [{"field": "title"}]}},
        {
            "label": "Pipeline",
            "kind": "board",
            "manifest": {"stackFieldKey": "stage", "cardFields": ["company", "value", "owner"]},
        },
        {
            "label": "To call again",
            "manifest": {
                "filter": {"field": "stage", "op": "not_in", "value": ["won", "lost"]},
                "sorts": [{"field": "last_contact", "nulls": "first"}],
            },
        },
    ],
    record_templates=[
        {"label": "Lead", "data": {"stage": "lead"}, "isDefault": True},
        {"label": "Customer", "data": {"stage": "won", "tags": ["customer"]}},
    ],
)

CONTENT_CALENDAR = Template(
    key="content_calendar",
    label="Content calendar",
    description="Posts and articles from the idea to the day they are published.",
    icon="📅",
    category="marketing",
    fields=[
        {"label": "Title", "key": "title", "kind": "text"},
        status(
            "Status",
            todo=["Idea", "Planned"],
            doing=["Drafting", "In review", "Scheduled"],
            done=["Published"],
        ),
        tags("Channels", "Blog", "Newsletter", "Social", "Video"),
        {"label": "Author", "kind": "person"},
        {"label": "Publish on", "kind": "datetime"},
        {"label": "Cover", "kind": "url"},
        {"label": "Published at", "kind": "url"},
        {"label": "Brief", "kind": "rich_text"},
    ],
    views=[
        {"label": "All content"},
        {"label": "Calendar", "kind": "calendar", "manifest": {"dateFieldKey": "publish_on"}},
        {
            "label": "Board",
            "kind": "board",
            "manifest": {"stackFieldKey": "status", "cardFields": ["author", "publish_on"]},
        },
        {
            "label": "Gallery",
            "kind": "gallery",
            "manifest": {"coverFieldKey": "cover", "cardFields": ["channels", "status"]},
        },
    ],
    record_templates=[
        {
            "label": "Article",
            "data": {"channels": ["blog"], "brief": "Reader:\nPoint:\nSources:"},
            "isDefault": True,
        },
        {"label": "Newsletter", "data": {"channels": ["newsletter"]}},
    ],
)

INVENTORY = Template(
    key="inventory",
    label="Inventory",
    description="What is in stock, where, and what has to be ordered.",
    icon="📦",
    category="operations",
    fields=[
        {"label": "Item", "key": "title", "kind": "text"},
        {"label": "SKU", "kind": "text"},
        select("Category", "Material", "Part", "Product", "Tool"),
        {"label": "Quantity", "kind": "number", "settings": {"precision": 0}, "defaultValue": 0},
        {"label": "Reorder at", "kind": "number", "settings": {"precision": 0, "min": 0}},
        {"label": "Unit price", "kind": "currency", "settings": {"precision": 2, "min": 0}},
        {"label": "Location", "kind": "text"},
        {"label": "Supplier", "kind": "text"},
        {"label": "Ordered", "kind": "checkbox"},
        {"label": "Counted on", "kind": "date"},
    ],
    views=[
        {"label": "All items", "manifest": {"sorts": [{"field": "title"}]}},
        {
            "label": "Out of stock",
            "manifest": {"filter": {"field": "quantity", "op": "lte", "value": 0}},
        },
        {
            "label": "By category",
            "kind": "board",
            "manifest": {"stackFieldKey": "category", "cardFields": ["quantity", "location"]},
        },
    ],
)

READING_LIST = Template(
    key="reading_list",
    label="Reading list",
    description="Books and articles to read, being read and read.",
    icon="📚",
    category="personal",
    fields=[
        {"label": "Title", "key": "title", "kind": "text"},
        {"label": "Author", "kind": "text"},
        select("Kind", "Book", "Article", "Paper", "Podcast", "Video"),
        status("Status", todo=["To read"], doing=["Reading"], done=["Read", "Given up"]),
        {"label": "Rating", "kind": "rating"},
        {"label": "Link", "kind": "url"},
        {"label": "Finished", "kind": "date"},
        tags("Topics"),
        {"label": "Notes", "kind": "rich_text"},
    ],
    views=[
        {"label": "All", "manifest": {"sorts": [{"field": "status"}, {"field": "title"}]}},
        {
            "label": "Best",
            "kind": "list",
            "manifest": {
                "filter": {"field": "rating", "op": "gte", "value": 8},
                "sorts": [{"field": "rating", "direction": "desc"}],
            },
        },
    ],
)
