"""Endpoints: the interface (one try at one model), the registry from names to endpoints, providers, weights on this
machine, and Models made of Models. What a model cannot take in is reshaped before it is sent."""
