"""How the attributes of each op are spelled in HLO text and read back."""
