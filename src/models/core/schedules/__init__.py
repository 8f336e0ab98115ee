"""When schedules are due: cron expressions, time tables, time zones, clock changes. Pure."""
