"""What needs torch: engines that work on batches."""
