"""Client-side TLS: identity, trust, and kazoo's connections."""
