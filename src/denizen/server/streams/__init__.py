"""The event streams of a space, of an agent and of a person, and the table of their events."""
