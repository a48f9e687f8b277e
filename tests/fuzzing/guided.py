"""Coverage-guided search: texts that reach new lines of the reader are kept and mutated further.

It needs atheris, of which there are wheels for Linux: `pip install atheris`. Of the texts that are neither read nor
refused the shortest is kept for each place that fails, in the folder `finds`.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import traceback
from collections.abc import Iterable
from pathlib import Path

LARGEST = 4096


HLO = r"[a-z0-9]+\[[\d,]*\]|[a-z-]+\(|[A-Za-z_]+=[^\s\"\\]{1,20}"
MLIR = r"[a-z_]+\.[a-z_]+|tensor<[\w?]+>|#\w+<\w+|[a-z_]+ = \S{1,12}"


def words_of(reader: str, texts: Iterable[str]) -> set[str]:
    """Opcodes, attributes and shapes as they stand in texts, and all that there are."""
    from xbuild.core.op import OPS
    from xbuild.stablehlo.reading.rules import RULES, enter_all_rules
    from xbuild.text.reader import own_keys

    found = {word for text in texts for word in re.findall(MLIR if reader == "mlir" else HLO, text)}
    if reader == "mlir":
        enter_all_rules()
        return found | set(RULES)
    return found | {f"{each.spelling}(" for each in OPS.values()} | {f", {k}=" for each in OPS for k in own_keys(each)}


def write_words(path: Path, words: Iterable[str]) -> None:
    """Words as a dictionary of libFuzzer's."""
    shown = (word.replace("\\", "\\\\").replace('"', '\\"') for word in sorted(words) if word.isprintable())
    path.write_text("".join(f'"{word}"\n' for word in shown if word.isascii()))


def keep(folder: Path, data: bytes, error: Exception) -> None:
    """The shortest text for each place at which something goes wrong, and for each kind of what it is."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    path = folder / f"{Path(frame.filename).stem}-{frame.lineno}-{type(error).__name__}"
    if not path.exists() or path.stat().st_size > len(data):
        folder.mkdir(exist_ok=True)
        path.write_bytes(data)
        print(f"{path}: {type(error).__name__}: {str(error)[:300]}", flush=True)


def search(folder: Path, seconds: int, seed: int, reader: str) -> None:
    """Does not return: libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["xbuild", "shape_inference"]):
        from tests.fuzzing import mlir
        from tests.fuzzing.mutations import Mutator, corpus, one_of_each, rejects
        from tests.fuzzing.verdict import verdict
    seeds = mlir.texts() if reader == "mlir" else [*corpus(LARGEST), *rejects(), *one_of_each()]
    judge = mlir.verdict if reader == "mlir" else verdict
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(seeds):
        (folder / "corpus" / f"seed{number}").write_text(text)
    write_words(folder / "words", words_of(reader, seeds))

    def mutated(data: bytes, largest: int, seed: int) -> bytes:
        """Half of the time libFuzzer's own mutation, half one of ours."""
        if seed % 2:
            return bytes(atheris.Mutate(data, largest))
        text = Mutator(seed, seeds[seed % 7 :: 7]).change(data.decode(errors="replace"))
        return text.encode(errors="replace")[:largest]

    def judged(data: bytes) -> None:
        """What goes wrong is told and kept, and the search goes on."""
        try:
            judge(data)
        except Exception as error:
            keep(folder / "finds", data, error)

    options = [
        sys.argv[0], str(folder / "corpus"), f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={LARGEST}",
        f"-dict={folder / 'words'}", "-timeout=60", "-rss_limit_mb=4096", f"-artifact_prefix={folder}/",
        "-print_final_stats=1",
    ]  # fmt: skip
    atheris.Setup(options, judged, custom_mutator=mutated)
    atheris.Fuzz()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing.guided", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reader", choices=("text", "mlir"), default="text", help="of HLO text, or of StableHLO text")
    parser.add_argument("--folder", type=Path, help="where texts are kept; one that goes away, unless it is named")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        search(chosen.folder or Path(made), chosen.seconds, chosen.seed, chosen.reader)


if __name__ == "__main__":
    main()
