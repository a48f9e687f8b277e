# %% [markdown]
# # 23. A TPU script from 2018, replica by replica
#
# TPU scripts from 2018 define a function on tensors and replicate it with one line. `xb.tpu` provides the names from
# the TensorFlow module that these scripts used.
#
# In this lesson, four replicas train one weight w. Each replica has one example (x, y), and its loss is half of
# (w x - y)^2.

# %%
import numpy as np

import xbuild as xb
from xbuild import tpu
from xbuild.learning import about_xbuild, ask, on_xla, show

tpu.reset_variables()


def step(x, y):
    w = tpu.get_variable("w", [1, 1], initializer=tpu.zeros_initializer)
    error = xb.dot(x, w) - y
    loss = xb.reduce(error * error, 0.0, xb.add) / 2.0
    optimizer = tpu.CrossShardOptimizer(tpu.GradientDescentOptimizer(1.0))
    return loss, optimizer.minimize(loss, var_list=[w])


x, y = np.ones((4, 1), np.float32), np.float32([[1], [2], [3], [6]])
program = tpu.batch_parallel.program(step, [x, y], num_shards=4)


def on_machine(w):
    """The claim that XLA:CPU agrees on a step from this w: (loss, new w) on each replica."""
    return on_xla(program.module, *([x[r : r + 1], y[r : r + 1], [[w]]] for r in range(4)))


ask("How many replicas run the function, and how many examples does each replica have?", ...,
    lambda: [program.num_replicas, len(x) // program.num_replicas],
    claim=about_xbuild("batch_parallel splits each array into num_shards parts"))  # fmt: skip

# %% [markdown] rule
# Four replicas run the function, with one example each. `batch_parallel` splits the arrays along dimension 0 and joins
# the results.
#
# ## The first step
#
# The weight w is 0, every x is 1, and y is 1, 2, 3, 6. The learning rate is 1.


# %%
def trained(w):
    """The weight after a step from w, on each replica."""
    rows = [[x[r : r + 1], y[r : r + 1], np.float32([[w]])] for r in range(4)]
    return [float(result[1][0, 0]) for result in xb.execute(program.module, rows)]


ask("What is the loss of replica 3, whose y is 6?", ..., lambda: float(program.run()[0][3]), claim=on_machine(0))

# %% [markdown] rule
# The loss of replica 3 is (0 - 6)^2 / 2 = 18. Each replica has its own loss; the losses are not summed.

# %%
ask("The gradients are -1, -2, -3, -6, and CrossShardOptimizer takes their mean. What is w after the step on each "
    "replica?",
    ..., trained, 0, claim=on_machine(0))  # fmt: skip

# %% [markdown] rule
# The mean of the gradients is -3, so w is 0 + 3 = 3 on all four replicas. The program divides each loss by 4 and sums
# the gradients with an all-reduce: look for the constant 0.125 = 1/2/4 in its text.

# %%
print(program)
ask("How many all-reduce instructions does the program have?", ...,
    lambda: sum(each.opcode == "all_reduce" for each in program.module.entry.instructions),
    claim=about_xbuild("Each trained variable has one all-reduce"))  # fmt: skip
ask("What is w on each replica after a second step, from w = 3?", ..., trained, 3, claim=on_machine(3))
show(program.trace())

# %% [markdown] rule
# The program has one all-reduce. After the second step, w is still 3: the errors are 2, 1, 0 and -3, and their mean is
# 0. The solution is the mean of y.
#
# **Rule.** Replicated training is one function, one all-reduce for each variable, and a loss that is divided by the
# number of replicas.
