"""A client's side of TLS: who it is, whom it trusts, and kazoo's connections."""
