"""Encrypts files outside of the cluster under keys of Secrets."""
