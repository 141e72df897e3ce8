"""What every room knows: names, reasons, Unknown, conditions, Kubernetes objects. Pure."""
