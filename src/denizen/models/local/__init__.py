"""`local:smollm2`: a real, tiny language model on this machine."""
