"""Calls to providers where users signed in: tokens for codes, new ones, their end."""
