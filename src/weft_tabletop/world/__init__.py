"""Scenes and their images, what can be asked for and what it does, the sentences that ask for it, and the right
answers."""
