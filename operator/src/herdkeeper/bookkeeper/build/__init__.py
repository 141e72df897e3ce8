"""Builds the Kubernetes objects of bookies and autorecovery. Pure."""
