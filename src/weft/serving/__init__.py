"""`weft serve`: a model behind an address, for weft and for every client of OpenAI's chat completions.

request -> app (token, limits, health, metrics) -> pool (this process, or replicas on Ray Serve) -> replica (one model)
"""
