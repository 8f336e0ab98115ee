"""What would break: the places that name a thing, and renames that change them all."""
