"""What the rules of the StableHLO printer share: names of values, types, attributes, constants, regions."""
