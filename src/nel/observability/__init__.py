"""What a run tells: attempts, scores, runtime, failures and progress."""
