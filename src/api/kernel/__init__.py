"""The request pipeline: from the bytes of a request to the bytes of its answer (docs/adr/0025)."""
