"""The impact of a change: the places that name a thing, and renames that change them all."""
