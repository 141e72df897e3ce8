"""Does one action, with its precondition. Each may be cut off anywhere: the next reconcile plans from what is then true."""
