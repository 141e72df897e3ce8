"""What every room uses: names, reasons, Unknown, conditions, Kubernetes objects. Pure."""
