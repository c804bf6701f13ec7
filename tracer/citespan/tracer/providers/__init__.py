"""Citations out of provider answers."""
