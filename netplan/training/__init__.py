"""Training jobs: what a step computes, what it communicates, and how long both take on a fabric."""
