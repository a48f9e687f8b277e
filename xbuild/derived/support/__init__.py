"""Functions that comfortable forms share: reading of arguments, numbers as operands, broadcasting, errors."""
