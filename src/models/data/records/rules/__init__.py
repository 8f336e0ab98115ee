"""What a record may hold and how records are asked for. Pure."""
