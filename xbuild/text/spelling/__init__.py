"""The tokens of HLO text (shapes, literals, names, groups), and the scanner that reads them."""
