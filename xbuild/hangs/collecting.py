"""How to take dumps: what to set before a run, and what to collect before a stuck job is killed."""

from __future__ import annotations

HOW = {
    "torch": """\
Flight Recorder of PyTorch (torch 2.5 and later; on by default in torch 2.13)

Before the run, set on all ranks:
  TORCH_FR_BUFFER_SIZE=20000          entries that each rank keeps; older: TORCH_NCCL_TRACE_BUFFER_SIZE
  TORCH_NCCL_DUMP_ON_TIMEOUT=1        write the dump when a collective times out
  TORCH_FR_DUMP_TEMP_FILE=/shared/fr/trace_rank_
                                      the start of the file names; the rank follows; older:
                                      TORCH_NCCL_DEBUG_INFO_TEMP_FILE

If the job is stuck and has not timed out, ask for the dumps:
  set TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/fr_pipe before the run, and write 1 to the pipe of each rank
With gloo, a thread of each rank has to write them:
  open(f"/shared/fr/trace_rank_{rank}", "wb").write(torch._C._distributed_c10d._dump_fr_trace())

Collect before the job is killed:
  the dump of every rank, also of those that look healthy: a rank without a dump is reported as unknown
  the log of the launcher (torchrun), which names a rank that ended first

Then: xbuild hang /shared/fr launcher.log
""",
    "jax": """\
JAX and XLA (CPU and GPU)

Before the run, set on all processes:
  XLA_FLAGS="--xla_dump_to=/shared/dump --xla_dump_hlo_as_text"
                                      the programs, for --program
  on CPU, add --xla_cpu_collective_call_warn_stuck_timeout_seconds=20
  on GPU, add --xla_gpu_execution_progress_tracking=10 --xla_gpu_executable_warn_stuck_timeout_seconds=20
                                      the log names the instructions that are not completed
  NCCL_RAS_ENABLE=1                   the default; see `xbuild hang --how nccl`

Collect before the job is killed:
  stderr of every process, which has the lines about rendezvous, progress and heartbeats
  on GPU, the report of `ncclras -f json` of one process
  the dump folder, or the folder of `xbuild guard --report`

Then: xbuild hang logs/ ras.json --program /shared/dump#jit_step
""",
    "nccl": """\
NCCL RAS (2.24 and later; JSON from 2.28) and NCCL Inspector

Before the run, set on all ranks:
  NCCL_RAS_ENABLE=1                   the default
  NCCL_RAS_ADDR=localhost:28028       the default
  for the Inspector: NCCL_PROFILER_PLUGIN=.../libnccl-profiler-inspector.so NCCL_INSPECTOR_ENABLE=1
                     NCCL_INSPECTOR_DUMP_DIR=/shared/inspector NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=1000000

Collect before the job is killed, on one host (RAS asks all processes):
  ncclras -v -f json > ras.json       or, before 2.28, ncclras -v > ras.txt
  twice, some seconds apart: ranks whose counts still grow are not stuck

Then: xbuild hang ras.json
""",
    "tpu": """\
TPU

Before the run, set on all hosts:
  LIBTPU_INIT_ARGS="--xla_tpu_use_enhanced_launch_barrier=true"
                                      the log names processes that launch different programs
  XLA_FLAGS="--xla_dump_to=/shared/dump --xla_dump_hlo_as_text"

Collect before the job is killed:
  the digest of the TPU states (MegaScale's RapidEye writes it to the log of the coordinator)
  stderr of every host
  the dump folder of every host: `xbuild check HOST0 HOST1` compares the programs of the hosts

Then: xbuild hang logs/ --program /shared/dump#jit_step
""",
}
"""What to do for each system, by its name in `--how`."""
HOW["xla"] = HOW["jax"]
