"""Generators from the models: CRDs, the field reference, the operator's RBAC rules. Pure: values in, documents out."""
