"""Events, lanes, delivery, draining, acknowledgement, formatting."""
