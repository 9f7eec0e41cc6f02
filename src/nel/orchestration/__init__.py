"""Suites: services up, benchmarks run, services down."""
