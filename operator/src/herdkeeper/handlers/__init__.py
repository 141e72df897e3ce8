"""From events to reconciles: kopf watches, a queue orders, workers reconcile, a Lease says who may."""
