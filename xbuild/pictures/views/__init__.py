"""Which part of a program a picture shows, and how much of it stands folded."""
