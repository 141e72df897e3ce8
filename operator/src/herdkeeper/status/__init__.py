"""Pure summaries: (desired, observed, plan) -> conditions and status fields."""
