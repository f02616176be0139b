"""One call to a model, whoever makes it: cached, limited, retried, paid from a budget, and in the journal before anyone
uses its answer."""
