"""What is known about the text that an agent reads: who wrote it, and whether it comes from outside."""
