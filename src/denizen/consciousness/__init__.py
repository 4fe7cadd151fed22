"""The log, the window, the self, and the lease on an agent's mind."""
