"""The viewer: runs in a browser, read from their directories, which are never written to."""
