"""The inbox: events that reached automations, and their outcomes."""
