"""The drain of one bookie, from its last ledger to its volumes."""
