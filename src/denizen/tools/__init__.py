"""The tools of agents, and the record of their calls."""
