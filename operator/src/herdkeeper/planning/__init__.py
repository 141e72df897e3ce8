"""What plans and statuses of all kinds are made of: actions, intents, pods, rolling, summaries. Pure."""
