"""Building blocks of plans and statuses of all kinds: actions, intents, pods, rolling updates, summaries. Pure."""
