"""Programs as frameworks emit them: each is read natively and through jaxlib's conversion to HLO, and both are run."""
