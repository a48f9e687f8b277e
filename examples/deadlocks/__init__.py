"""Five programs that hang, or may: each is an example with one small mistake. Run one, and read what it says."""
