"""The compiled decoder: ordinary batches straight into Arrow's buffers."""
