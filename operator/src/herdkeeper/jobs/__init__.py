"""Checkpoint and ReplicationAudit, their schedules and drills."""
