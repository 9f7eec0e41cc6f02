"""The loop for models: seed, solve, verify; what is known is not done again."""
