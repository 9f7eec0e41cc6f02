"""Isolated execution: a protocol, backends, strategies and the manager that hands sandboxes out."""
