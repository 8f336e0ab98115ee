"""Runs of automations: the list, statistics, the page of one, actions on it, decisions by mail."""
