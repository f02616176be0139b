"""Scenes and their pictures, what can be asked for and what it does, the sentences that ask for it, and what is right
to answer."""
