"""`kubectl herdkeeper`: a person looks at stacks, and asks the operator for something. It acts by the API server alone."""
