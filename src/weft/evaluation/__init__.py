"""From a dataset to a run: the plan, generating replies, judging them, dry runs, and several benchmarks as a suite."""
