"""Foundations of every resource: identifiers, pages, access rules, expressions, schedules.

Nothing here knows a resource. The rules of access (`access`) say what a role, a scope and a level
permit; `expressions` compiles and evaluates CEL; `schedules` says when a cron expression is due;
`idempotency` keeps the answers of repeated calls; `purging` removes rows with all that is theirs.
"""
