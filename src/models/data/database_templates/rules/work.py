"""Templates for planning and doing work."""

from models.data.database_templates.rules.description import Template, select, status, tags

TASKS = Template(
    key="tasks",
    label="Tasks",
    description="What is to be done, by whom and until when.",
    icon="✅",
    category="work",
    fields=[
        {"label": "Task", "key": "title", "kind": "text"},
        status("Status", todo=["To do"], doing=["In progress", "Waiting"], done=["Done"]),
        select("Priority", "Low", "Medium", "High", "Urgent", defaultValue="medium"),
        {"label": "Assignee", "kind": "person"},
        {"label": "Due", "kind": "date"},
        {"label": "Estimate", "kind": "number", "settings": {"min": 0, "unit": "h"}},
        tags("Tags"),
        {"label": "Notes", "kind": "rich_text"},
    ],
    views=[
        {
            "label": "All tasks",
            "manifest": {"sorts": [{"field": "due"}]},
        },
        {
            "label": "Board",
            "kind": "board",
            "manifest": {"stackFieldKey": "status", "cardFields": ["priority", "assignee", "due"]},
        },
        {
            "label": "Calendar",
            "kind": "calendar",
            "manifest": {"dateFieldKey": "due"},
        },
    ],
    record_templates=[
        {"label": "Task", "data": {"priority": "medium"}, "isDefault": True},
        {"label": "Urgent task", "icon": "🔥", "data": {"priority": "urgent"}},
    ],
)

PROJECTS = Template(
    key="projects",
    label="Projects",
    description="Projects with their phase, their lead, their time and their money.",
    icon="🚀",
    category="work",
    fields=[
        {"label": "Project", "key": "title", "kind": "text"},
        status("Phase", todo=["Idea", "Planned"], doing=["Active", "On hold"], done=["Finished"]),
        {"label": "Lead", "kind": "person"},
        {"label": "Start", "kind": "date"},
        {"label": "End", "kind": "date"},
        {"label": "Budget", "kind": "currency", "settings": {"precision": 2, "min": 0}},
        {"label": "Progress", "kind": "percent", "settings": {"min": 0, "max": 100}},
        {"label": "Goal", "kind": "long_text"},
    ],
    views=[
        {"label": "All projects"},
        {
            "label": "By phase",
            "kind": "board",
            "manifest": {"stackFieldKey": "phase", "cardFields": ["lead", "end", "progress"]},
        },
        {
            "label": "Roadmap",
            "kind": "timeline",
            "manifest": {"dateFieldKey": "start", "endDateFieldKey": "end"},
        },
    ],
)

BUG_TRACKER = Template(
    key="bug_tracker",
    label="Bug tracker",
    description="Bugs from the report to the release that mends them.",
    icon="🐛",
    category="engineering",
    fields=[
        {"label": "Bug", "key": "title", "kind": "text"},
        {"label": "Number", "kind": "auto_number"},
        status(
            "Status",
            todo=["Reported", "Confirmed"],
            doing=["In progress", "In review"],
            done=["Fixed", "Not a bug"],
        ),
        select("Severity", "Cosmetic", "Minor", "Major", "Critical", defaultValue="minor"),
        {"label": "Assignee", "kind": "person"},
        {"label": "Steps to reproduce", "kind": "rich_text"},
        {"label": "Version", "kind": "text"},
        {"label": "Link", "kind": "url"},
        {"label": "Reported at", "kind": "created_at"},
        {"label": "Reported by", "kind": "created_by"},
    ],
    views=[
        {
            "label": "Open bugs",
            "manifest": {
                "filter": {"field": "status", "op": "not_in", "value": ["fixed", "not_a_bug"]},
                "sorts": [{"field": "severity", "direction": "desc"}],
            },
        },
        {
            "label": "Board",
            "kind": "board",
            "manifest": {"stackFieldKey": "status", "cardFields": ["severity", "assignee"]},
        },
        {
            "label": "Report a bug",
            "kind": "form",
            "manifest": {
                "form": {
                    "title": "Report a bug",
                    "fields": [
                        {"key": "title", "required": True, "label": "What happened?"},
                        {"key": "steps_to_reproduce", "label": "How can we see it?"},
                        {"key": "version"},
                        {"key": "link"},
                    ],
                    "submitLabel": "Report",
                    "confirmation": "Thank you. We will look into it.",
                }
            },
        },
    ],
    record_templates=[
        {
            "label": "Bug",
            "data": {"steps_to_reproduce": "1. \n2. \n\nExpected: \nInstead: "},
            "isDefault": True,
        },
        {"label": "Outage", "icon": "🚨", "data": {"severity": "critical"}},
    ],
)

MEETING_NOTES = Template(
    key="meeting_notes",
    label="Meeting notes",
    description="Meetings, who was there and what was decided.",
    icon="📝",
    category="work",
    fields=[
        {"label": "Meeting", "key": "title", "kind": "text"},
        {"label": "Date", "kind": "datetime"},
        select("Kind", "Planning", "Review", "One-on-one", "Customer", "Other"),
        {"label": "Attendees", "kind": "person"},
        {"label": "Agenda", "kind": "rich_text"},
        {"label": "Decisions", "kind": "rich_text"},
        {"label": "Recording", "kind": "url"},
    ],
    views=[
        {
            "label": "All meetings",
            "manifest": {"sorts": [{"field": "date", "direction": "desc"}]},
        },
        {"label": "Calendar", "kind": "calendar", "manifest": {"dateFieldKey": "date"}},
    ],
    record_templates=[
        {
            "label": "One-on-one",
            "data": {"kind": "one_on_one", "agenda": "- How are you?\n- What is in your way?"},
        },
        {
            "label": "Review",
            "data": {
                "kind": "review",
                "agenda": "- What went well?\n- What did not?\n- What next?",
            },
        },
    ],
)
