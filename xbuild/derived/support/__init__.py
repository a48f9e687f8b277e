"""What the comfortable forms share: reading of arguments, numbers as operands, broadcasting, errors."""
