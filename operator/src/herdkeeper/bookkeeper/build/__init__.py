"""The Kubernetes objects of bookies and autorecovery. Pure."""
