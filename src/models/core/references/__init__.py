"""What definitions name: fields, options and other things, and where."""
