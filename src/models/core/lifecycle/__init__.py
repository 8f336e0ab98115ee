"""Durable work: a row in a table, executed by a workflow of the same id (design section 3).

A kind of work is a table with a status, the moves between its states (`rules`) and the guarded
writes along them (`commands`). Automation runs, action runs and jobs are such workflow kinds.
"""
