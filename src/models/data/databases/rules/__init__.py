"""What a database may look like: field kinds, their settings, options and layout. Pure."""
