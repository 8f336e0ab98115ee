"""Waits of runs: nodes that go on when somebody decides, or when something happens."""
