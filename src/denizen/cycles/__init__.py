"""One think cycle: steps, stopping, streaming, outcome."""
