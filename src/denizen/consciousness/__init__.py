"""The log, the window, the self, and who may think with it."""
