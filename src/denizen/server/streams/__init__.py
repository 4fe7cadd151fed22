"""What the streams tell: of a space, of an agent, and to a person everything; and the table of their events."""
