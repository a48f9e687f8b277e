"""The demo: check, draw and run a training on four replicas, then swap two collectives and see the program refused."""

from __future__ import annotations

import argparse
from pathlib import Path

import xbuild as xb
from examples.digits import data, refusal, train
from examples.extras import wanted

with wanted("demo"):
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar


def main() -> int:
    """Run the demo; the exit status is 1 if the network learned too little."""
    parser = argparse.ArgumentParser(prog="python -m examples.digits", description=main.__doc__)
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--picture", type=Path, default=Path("digits.svg"))
    options = parser.parse_args()
    console = Console(highlight=False)
    steps = len(data.load()[0].images) // data.BATCH
    module = train.program(options.replicas, steps)
    describe(console, module)
    reached = learn(console, options.replicas, options.epochs)
    xb.viz(refusal.train_step(options.replicas), options.picture)
    console.print(f"\nThe training step is drawn in [bold]{options.picture}[/bold].")
    console.print("\nNow the last replica runs two of its collectives in the opposite order:\n")
    print(refusal.verdict(options.replicas))
    return 0 if reached >= 0.95 else 1


def describe(console: Console, module: xb.Module) -> None:
    """Print the size of the program and the verdict of the check."""
    instructions = sum(len(computation.instructions) for computation in module.computations)
    verdict = xb.check(module)
    console.print(
        f"[bold]{module.name}[/bold]: {instructions} instructions in {len(module.computations)} computations, "
        f"every shape checked as it was built, {module.num_replicas} replicas"
    )
    print(verdict)


def learn(console: Console, replicas: int, epochs: int) -> float:
    """Train, and print the accuracy on held-back digits after each epoch; returns the last accuracy."""
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    accuracy = 0.0
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("training", total=epochs)
        for progress in train.train(replicas, epochs):
            accuracy = progress.accuracy
            bar.console.print(f"epoch {progress.epoch:3}   loss {progress.loss:.4f}   held back {accuracy:.1%} right")
            bar.advance(task)
    return accuracy


if __name__ == "__main__":
    raise SystemExit(main())
