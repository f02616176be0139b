"""`weft serve`: a model behind an address, for weft and for whoever speaks OpenAI's chat completions.

request -> door (token, limits, health, metrics) -> pool (one process, or replicas on Ray Serve) -> replica (parts, fit,
batches)"""
