"""Tables in every text format, pages, plots, comparisons and exports; the same pages served from the journal."""
