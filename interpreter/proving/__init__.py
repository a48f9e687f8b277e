"""Proves that a compiler kept the function of a program, and names the pass that did not."""

from .passes import PassProof as PassProof
from .passes import prove_passes as prove_passes
from .proof import Proof as Proof
from .proof import prove as prove

__all__ = ["PassProof", "Proof", "prove", "prove_passes"]
