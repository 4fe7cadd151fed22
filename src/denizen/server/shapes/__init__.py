"""What is sent and answered, as JSON: one module for each room."""
