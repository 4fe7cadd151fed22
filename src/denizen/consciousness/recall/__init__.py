"""Search over an agent's whole history: what was said to it, what it said and did, and what it noted."""
