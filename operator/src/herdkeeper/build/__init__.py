"""Pure builders: a validated resource and what its references resolved to, to Kubernetes objects as plain dicts."""
