"""Talking to models: one `ModelClient` for each service, shared by everything that uses that service."""
