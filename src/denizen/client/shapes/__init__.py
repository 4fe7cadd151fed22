"""What a server tells, as values, by what it tells of."""
