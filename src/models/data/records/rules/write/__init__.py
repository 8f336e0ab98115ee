"""What writes make of records: values checked, options added, upserts matched, states planned."""
