"""What an agent means to do: goals, notes, plans, timers, and what fires them."""
