"""What all three loops share: records, digests, logs, the run directory, the pool, secrets, loading, errors."""
