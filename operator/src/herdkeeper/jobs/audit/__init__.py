"""The run of a ReplicationAudit."""
