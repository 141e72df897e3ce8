"""The reconcile loop: the table of kinds, the queue, validation, execution of actions."""
