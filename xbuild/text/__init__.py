"""HLO text, out and in."""
