"""Commands for a terminal: runs and incidents of any platform that answers to a key."""
