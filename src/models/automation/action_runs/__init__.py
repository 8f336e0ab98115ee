"""Runs of actions: accepted in one transaction, carried out step by step."""
