"""Screens over the screen: confirm a move, look closely, change a parameter, help."""
