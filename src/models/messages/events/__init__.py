"""Events that automations answer: kept with the change they tell of, dispatched after it."""
