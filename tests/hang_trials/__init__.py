"""Trials of `xbuild hang` on jobs of real processes, with faults that are drawn before anything runs.

The trials were written from the user's page (docs/hangs.md), without the code of the reader. A trial is a training
script of 2 to 8 ranks with one fault. What is at fault (the ranks, the kind, and where it is defined the group and the
number of the operation) is part of the draw, and follows from the fault and from the rules of that page:

- the minority is at fault, and in a tie all sides are;
- operation B in place of A is a skipped A if B used to follow A;
- an order that is wrong in the first step is `wrong_order`.

A draw whose kind these rules do not define, or whose fault has no effect, is drawn again. For messages, the page fits
two kinds in some cases (a message has no partner because the other side never launched it): these jobs list both.

An environment with torch (2.13, CPU, gloo was used) runs the jobs under `torchrun`; everything else runs in the
project's own. torch is not a dependency, and the tests do not need it.

    python -m tests.hang_trials draw --seed 1 > jobs.jsonl
    python -m tests.hang_trials run jobs.jsonl FOLDER --python ENVIRONMENT_WITH_TORCH/bin/python
    python -m tests.hang_trials judge jobs.jsonl FOLDER
    python -m tests.hang_trials beside jobs.jsonl FOLDER --python ENVIRONMENT_WITH_TORCH/bin/python

- `jobs.py`: what a job is, and what each rank launches.
- `layouts.py`: the training programs, with groups as real code has them.
- `faults.py`: the faults, what healthy and faulty ranks do, and what is at fault.
- `messages.py`: jobs of send and recv. gloo records no messages, so the ranks log their real calls in NCCL's layout:
  these dumps are synthetic.
- `scripts.py`: a job as a script. `recording.py` is what the script imports; it runs on the ranks.
- `running.py`: draw and run the jobs. `judging.py`: compare the answers with the truth, and with PyTorch's analyser.
- `drawn/`: what was drawn.
"""
