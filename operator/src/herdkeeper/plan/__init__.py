"""Pure decisions: (desired, observed) -> a few ordered actions, or the reason to wait."""
