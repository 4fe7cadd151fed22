"""What can be done with a runtime, by subject, and how it is put together."""
