"""What an agent can do, and the record of what it did."""
