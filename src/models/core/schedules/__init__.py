"""Due times of schedules: cron expressions, time tables, time zones, clock changes. Pure."""
