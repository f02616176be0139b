"""Tables to terminal, Markdown, LaTeX, CSV and JSON."""
