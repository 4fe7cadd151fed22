"""Export and import of agents with their whole history, and of spaces with their messages, as files."""
