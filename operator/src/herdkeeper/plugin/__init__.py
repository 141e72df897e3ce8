"""`kubectl herdkeeper`: shows stacks and sends requests to the operator. It uses only the API server."""
