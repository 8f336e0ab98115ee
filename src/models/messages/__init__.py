"""Messages: events for triggers, the workspace log, notifications, webhook signatures, jobs.

A lower domain tells a higher one by writing an event or accepting a job in its own transaction;
who answers it is decided above.
"""
