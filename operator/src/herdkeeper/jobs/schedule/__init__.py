"""ScheduledCheckpoint and ScheduledReplicationAudit."""
