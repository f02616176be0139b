"""One file per wire protocol. `endpoint.py` is the interface, `registry.py` finds an endpoint by name."""
