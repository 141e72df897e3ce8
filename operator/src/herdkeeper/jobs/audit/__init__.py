"""How an audit ends, and the window in which it reads."""
