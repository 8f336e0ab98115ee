"""The steps that a run of an action executes."""

from models.automation.action_runs.rules import MAIN, PlannedStep, plan_of
from models.automation.actions.rules import ActionKind
from models.automation.automations.rules.planner.plan import PlanRetry


def test_an_action_of_one_step() -> None:
    config = {"kind": "send_notification", "title": "Hello"}
    assert plan_of(ActionKind.SEND_NOTIFICATION, config) == [
        PlannedStep(MAIN, ActionKind.SEND_NOTIFICATION, {"title": "Hello"})
    ]


def test_the_steps_of_a_sequence() -> None:
    retry = {
        "maxAttempts": 5,
        "initialDelaySeconds": 1,
        "backoffMultiplier": 3,
        "maxDelaySeconds": 9,
    }
    steps = [
        {
            "id": "first",
            "kind": "send_notification",
            "config": {"title": "Hello", "body": "Old"},
            "input": {"body": "New"},
            "retry": retry,
        },
        {"id": "next", "kind": "send_notification", "when": "true", "continueOnError": True},
    ]
    first, following = plan_of(ActionKind.SEQUENCE, {"kind": "sequence", "steps": steps})
    assert first == PlannedStep(
        "first",
        ActionKind.SEND_NOTIFICATION,
        {"title": "Hello", "body": "New"},
        retry=PlanRetry(5, 1, 3, 9),
    )
    assert first.attempts == 5
    assert following == PlannedStep(
        "next", ActionKind.SEND_NOTIFICATION, {}, when="true", continue_on_error=True
    )
    assert following.attempts == 1
