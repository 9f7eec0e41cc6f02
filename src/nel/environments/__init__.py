"""Where problems come from: the contract, the registry, `@benchmark`, data sources."""
