"""`weft serve`: a model behind an address, for weft and for whoever speaks OpenAI's chat completions.

request -> app (token, limits, health, metrics) -> pool (this process, or replicas on Ray Serve) -> replica (one model)
"""
