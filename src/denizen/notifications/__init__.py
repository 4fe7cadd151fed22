"""Web push: notifications that reach a browser while no tab of Denizen is open."""
