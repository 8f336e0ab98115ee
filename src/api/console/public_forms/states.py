"""The state of a form in words: whether it takes answers, and why not."""

from dataclasses import dataclass
from datetime import datetime

from models.data.fields.rules.fields import FieldSpecs
from models.data.forms.rules.questions import questions, unmet
from models.data.forms.shapes import FormDetail, FormField


@dataclass(frozen=True, slots=True)
class FormState:
    """A word for how far a form takes answers, and a sentence about it."""

    open: bool
    word: str
    sentence: str


def state_of(form: FormDetail, fields: FieldSpecs, now: datetime) -> FormState:
    """The state of a form; `fields` has what the reader sees of its database."""
    if not form.public:
        return FormState(False, "private", "Its address opens nothing until the form is public.")
    if not form.accepting:
        return FormState(False, "closed", "It was closed: it says that it takes no answers.")
    if form.closes_at is not None and form.closes_at <= now:
        return FormState(False, "closed", "Its time is over.")
    if form.max_submissions is not None and form.submission_count >= form.max_submissions:
        return FormState(False, "full", "It has as many answers as it takes.")
    told = [one.model_dump(by_alias=True, exclude_none=True) for one in form.fields]
    asked = questions(map(FormField.model_validate, told), fields, now)
    lacking = [fields[key].label for key in unmet(asked, fields)]
    if lacking:
        sentence = f"The database requires {', '.join(lacking)}, which the form does not always ask"
        return FormState(False, "closed", f"{sentence}.")
    return FormState(True, "open", "Anybody who has the address can answer.")
