"""What was seen in one reconcile: plain values that observe/ fills and plan/ and status/ decide upon."""
