"""What makes things happen: calls (memo, limit, retry, journal), adaptive limits, and runs."""
