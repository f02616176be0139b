"""One file a provider: what it is sent, and what its replies mean."""
