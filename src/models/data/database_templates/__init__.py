"""Database templates: databases the platform ships ready to be filled."""
