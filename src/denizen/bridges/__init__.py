"""Bridges connect rooms of other services with spaces, and accounts there with people; an adapter for each service."""
