"""What a user writes: schemas, composition, overrides and environment, with the file and line of every value."""
