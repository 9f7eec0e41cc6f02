"""How a problem is attempted."""
