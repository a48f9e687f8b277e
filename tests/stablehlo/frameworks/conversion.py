"""StableHLO text as HLO text by jaxlib's conversion, in a process of its own, which some texts end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context


def convert(text: str) -> str:
    """The HLO text, or after `!` why there is none."""
    from jaxlib import _jax

    try:
        computation = _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
        return str(computation.as_hlo_text())
    except Exception as error:
        return f"!{type(error).__name__}: {str(error).splitlines()[0][:200]}"


def converted(texts: Iterable[str]) -> Iterator[str]:
    """What each text becomes; a text that ends the process is told as `!`, and the next one has a new process."""
    pool = _pool()
    for text in texts:
        try:
            yield pool.submit(convert, text).result(timeout=60)
        except BrokenProcessPool:
            pool = _pool()
            yield "!jaxlib dies of it"
    pool.shutdown()


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))
