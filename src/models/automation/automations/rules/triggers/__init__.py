"""Triggers of automations: their configs, what they subscribe to, and how payloads are checked.

Versions store trigger configs as these modules parse them. The resource `triggers` reads them when
it dispatches events, and `webhooks` when it takes a call.
"""
