"""How far a judge can be trusted: it is asked each benchmark's own questions about answers whose faults are known, and gets a card."""
