"""Seeing and forgetting what is remembered: on the database of this machine all of it, on a server what one may see."""
