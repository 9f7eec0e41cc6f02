"""Statistics: every mean comes as an `Estimate`, with an interval that honours repeats and clusters."""
