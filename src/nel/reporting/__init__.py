"""A run, whatever its kind, as something to read: the read model and the reports made from it."""
