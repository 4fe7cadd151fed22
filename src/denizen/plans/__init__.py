"""Goals, notes, plans and timers of agents, and what fires them."""
