"""Waits of runs: nodes that go on when a member decides, or when an event arrives."""
