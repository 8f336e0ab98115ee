"""Automations: the list, and the page of one."""
