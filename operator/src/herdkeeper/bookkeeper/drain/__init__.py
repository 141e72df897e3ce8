"""How one bookie leaves, from its last ledger to its volumes."""
