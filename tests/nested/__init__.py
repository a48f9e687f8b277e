"""Programs whose loops, branches and calls stand inside of each other, and the limits of time of what reads them."""
