"""What an agent may do with text that it has read: where the text came from, and which effects need a person."""
