"""Foundations of every noun: identifiers, pages, access rules, expressions, schedule mathematics.

Nothing here knows a noun. The rules of access (`access`) say what a role, a scope and a level
permit; `expressions` compiles and evaluates CEL; `schedules` says when a cron expression is due;
`idempotency` keeps the answers of repeated calls; `purging` removes rows with all that is theirs.
"""
