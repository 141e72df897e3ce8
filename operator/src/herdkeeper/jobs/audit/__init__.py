"""How an audit ends, and its window."""
