"""Gates, cheapest first: rules, pixels, embeddings, a judge with a schema, people on a sample."""
