"""Search over an agent's whole life: what was said to it, what it said and did, and what it noted."""
