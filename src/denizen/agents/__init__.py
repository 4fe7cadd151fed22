"""Definition, storage, activation and life cycle of agents."""
