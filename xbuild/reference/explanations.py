"""Explanations of each kind of refusal, verdict and stop, each in a sentence."""

from __future__ import annotations

EXPLANATIONS = {
    # shapes
    "arity_mismatch": "An op, or a computation that it calls, has too many or too few operands or parameters.",
    "attribute_length_mismatch": "A list attribute must have one entry for each dimension or operand, and has more "
    "or fewer.",
    "bad_order": "A list of dimensions must be in ascending order (or in the order that the op states), and is not.",
    "dimension_mismatch": "Two operands, or an operand and an attribute, state different extents for one dimension.",
    "dimension_out_of_range": "A dimension number is outside of 0..rank-1 of the array whose dimension it names.",
    "divisibility": "A dimension must be divided into equal parts, and its extent is no multiple of their number.",
    "duplicate_dimension": "A list of dimension numbers names one of them twice.",
    "element_count_mismatch": "The result would have another number of elements than the operand has.",
    "element_type_mismatch": "Operands must have the same element type, and do not; `xb.convert` changes the type of "
    "one.",
    "element_type_unsupported": "The op is not defined for this element type.",
    "index_out_of_range": "A start, limit, size or tuple index is outside of the range of what it indexes.",
    "invalid_attribute": "An attribute is missing, is not one of the op's, or has a value that the op does not allow.",
    "invalid_group": "Replica groups or source-target pairs are empty, name an id twice or a negative id, or differ "
    "in size.",
    "negative_size": "An extent or a size is negative, or would become negative.",
    "non_positive": "A count, a stride or a channel number is zero or negative where it must be positive.",
    "non_scalar": "An operand must be a scalar (rank 0), and is an array with dimensions.",
    "not_array": "An operand must be an array, and is a tuple or a token.",
    "not_permutation": "A list must name every dimension exactly once, and does not.",
    "not_tuple": "An operand must be a tuple, and is an array or a token.",
    "overflow": "The array would have more elements than a signed 64-bit integer can count.",
    "rank_mismatch": "Two operands, or an operand and an attribute, have different ranks.",
    "rank_too_small": "The operand has fewer dimensions than the op needs.",
    "signature_mismatch": "A called computation takes or returns other shapes than the instruction that calls it "
    "needs.",
    "token_expected": "An operand must be a token[], which orders effects, and is not; `xb.after_all` makes one.",
    "too_many_states": "A program has more states, or its data more ways to decide, than a page of the game holds.",
    "tuple_too_large": "A tuple has more arrays, or deeper nesting, than xbuild reads.",
    # types on a mesh
    "already_varying": "A value is cast to varying along an axis of the mesh along which it is varying already.",
    "bilinear_on_unreduced": "Both operands of a product are unreduced along an axis; one of them must be summed "
    "first.",
    "branch_type_mismatch": "Branches of a conditional return values that vary along different axes of the mesh.",
    "carry_type_mismatch": "A value that a loop carries varies along other axes after a trip than before it.",
    "divergent_collective": "A collective along an axis is inside a branch or loop whose condition varies along that "
    "axis.",
    "mixed_axis_state": "A collective along several axes has an operand whose state is not the same along all of them.",
    "nonlinear_on_unreduced": "An op that is not linear has an unreduced operand; `xb.mesh.psum` sums it first.",
    "nonzero_pad_on_unreduced": "An unreduced value is padded with a number other than zero, which each device would "
    "add.",
    "out_spec_not_replicated": "A result varies along an axis of the mesh that its out_spec does not mention.",
    "state_mismatch": "A value is in another state (varying, unreduced, reduced, invarying) along an axis than the "
    "op needs.",
    "unbound_axis": "A name is no axis of the mesh, or there is no mesh.",
    "unsupported_cast": "There is no cast from the one to the other state of an axis of the mesh.",
    "variance_broken": "Devices may hold different values of an instruction that is stated to be one value along an "
    "axis.",
    # shardings
    "bad_reduction": "A collective of a grid names a reduction that has no lowering.",
    "device_index_out_of_range": "A coordinate of a device lies outside of the axis of the grid that it counts along.",
    "device_index_size": "A device is named by more or fewer coordinates than there are axes.",
    "grid_axes_duplicate": "A list of the axes of a grid names one of them twice.",
    "grid_axis_duplicated": "A sharding cuts by one axis of a grid twice; each part of an axis cuts one dimension.",
    "grid_axis_negative": "The number of an axis of a grid is negative; axes are counted from 0.",
    "grid_axis_out_of_range": "The number of an axis of a grid is as large as the number of its axes, or larger.",
    "grid_rank_zero": "A grid has no axis.",
    "halo_and_offsets_exclusive": "A sharding has both halo sizes and offsets, of which it may have one.",
    "halo_count": "A sharding has another number of halo sizes than two for each cut dimension.",
    "offsets_decreasing": "The offsets of the parts of a dimension do not grow from 0.",
    "offsets_wrong_size": "A dimension that is cut into n parts has another number of offsets than n + 1.",
    "sharding_conflict": "A value is annotated with two shardings whose order has no meaning.",
    "shift_axis_not_in_group": "A shift is along an axis of the grid that is none of those that form its groups.",
    # derivatives
    "not_differentiable": "An op on the way has no derivative, or the derivative is by a value that has none.",
    # building
    "builder_finished": "A builder that has been built records no more ops and is not built again.",
    "duplicate_parameter": "Two parameters of one computation have the same number.",
    "foreign_value": "A value of another builder is used; a region uses its own parameters only.",
    "immutable": "An element or an attribute of a value is assigned to; values do not change, and ops return new ones.",
    "invalid_name": "A name is not allowed in HLO text: letters, digits, `_`, `.` and `-`, no digit first, no word "
    "of HLO.",
    "invalid_operand": "An operand is no value of a builder, and no number or array that could be a constant.",
    "missing_parameter": "The parameter numbers of a computation are not 0, 1, 2 and so on, or it has no instructions.",
    "nested_too_deep": "Computations call each other through more levels than xbuild follows.",
    "no_builder": "No operand has a builder to record the op; `builder=` names one.",
    "not_a_computation": "A region must be a computation, or a function that returns a value, and is neither.",
    "not_concrete": "Python or NumPy needs the number behind a value, which only a run computes.",
    "not_copied": "A builder cannot be copied, nor a program be pickled; HLO text can be stored and read again.",
    "too_many_calls": "A program is written out once for each call, and calls inside calls would make it too long.",
    # replicated computations
    "duplicate_replica": "A group assignment names a replica twice.",
    "duplicate_source": "Source-target pairs name a replica as source twice.",
    "duplicate_target": "Source-target pairs name a replica as target twice.",
    "maximum_too_small": "A maximum shape is smaller than an input of one of the replicas.",
    "missing_replica": "A group assignment does not name one of the replicas.",
    "nested_replicate": "A replicated computation, or a part of it on the host, is inside another one.",
    "no_replicas": "The list of inputs is empty, so that there is no replica.",
    "ragged_groups": "The rows of a group assignment differ in length, so that they form no tensor.",
    "replica_out_of_range": "A group, a pair or a placement names a replica that the program does not have.",
    "split_count_mismatch": "A tensor is split into a number of pieces that is not the number of replicas in each "
    "group.",
    "structure_mismatch": "Two nested structures must have the same form, and do not.",
    # schedules
    "bad_pairs": "Source-target pairs name devices that there are not, or a send and its recv state different pairs.",
    "bad_schedule": "A schedule runs an instruction before one that it depends on, runs it twice, or leaves it out.",
    "channel_kind_mix": "One channel id is used for transfers of different kinds.",
    "companion_conflict": "Loops or conditionals of several devices must run together, and their order does not "
    "allow it.",
    "cycle": "Instructions depend on each other in a cycle, so that none can run first.",
    "data_dependent": "Data decide whether the program runs to its end; the report states the condition.",
    "deadlock": "Devices wait for each other, or for a device that never comes, and none of them can go on.",
    "device_out_of_range": "A group or a pair names a replica, partition or device that the program does not have.",
    "disallowed_computation": "A computation that must be pure, such as a reducer or a loop's condition, communicates.",
    "done_channel_mismatch": "A send-done or recv-done names another channel than the send or recv that it completes.",
    "duplicate_channel": "Two sends, or two recvs, of one program use the same channel id.",
    "done_kind_mismatch": "A done completes a start of another kind.",
    "duplicate_done": "A send, a recv or another start is completed twice.",
    "group_disagreement": "Devices that meet in one collective state different groups for it.",
    "host_flag_mismatch": "A send or recv is a transfer with the host and its done is not, or the other way round.",
    "missing_done": "A send, a recv or another start is never completed.",
    "missing_participant": "A replica is in no group of a collective that every replica runs.",
    "missing_recv": "A send has no recv on its channel.",
    "missing_send": "A recv has no send on its channel.",
    "missing_start": "A done has no start as its operand.",
    "nest_mismatch": "A send and its recv are inside different numbers of loops and conditionals.",
    "not_partitioned": "The program is one for all devices together, before XLA's partitioner makes one for each "
    "device.",
    "peer_mismatch": "The two ends of a channel name different devices as each other's peer.",
    "reducer_mismatch": "Programs meet in a collective, and reduce by different computations.",
    "self_send": "A device sends to itself.",
    "shape_mismatch": "Two statements of a shape differ: those of a send and its recv, or of HLO text and shape "
    "inference.",
    "start_misused": "The result of a start is used by an instruction other than its done.",
    "trip_count_mismatch": "Loops of several devices must run together, and run different numbers of trips.",
    # text
    "duplicate_attribute": "HLO text states an attribute of an instruction twice.",
    "duplicate_name": "Two instructions of a computation, or two computations, have the same name.",
    "elided_constant": "HLO text leaves out the elements of a constant, as `{...}`; print it with large constants.",
    "invalid_literal": "A word in a constant is not a number of its element type, or is out of its range.",
    "missing_attribute": "HLO text lacks an attribute that the op needs.",
    "not_in_stablehlo": "StableHLO has no form for an op, a type or a constant; docs/stablehlo.md has the table.",
    "missing_shape": "HLO text states no shape for a result whose shape cannot be inferred.",
    "syntax": "HLO text has a word that its grammar does not allow at this place.",
    "undefined_name": "A name of an instruction or a computation is used before it is defined, or is never defined.",
    "unknown_attribute": "HLO text gives an op an attribute that it does not have.",
    "unknown_opcode": "HLO text has an opcode that HLO, or xbuild, does not have.",
    # edits
    "in_use": "An instruction cannot be removed, since others use it or it is the root of its computation.",
    "not_a_call": "Only a call can be inlined, and the instruction is another op.",
    "used_too_early": "An edit would place an instruction before one that it depends on.",
    # other engines
    "engine_failed": "The process in which real XLA ran the program has died; the message has its last output.",
    "engine_unsupported": "Real XLA, or this build of it, cannot run the program.",
    "missing_extra": "A library that is needed is not installed; the message names the extra that installs it.",
    "package_conflict": "A package `interpreter` of another project is installed in the place of xbuild's.",
    # strict runs
    "division_by_zero": "An integer was divided by zero: the quotient is all ones in bits, the remainder is the "
    "dividend.",
    "division_overflow": "The least integer was divided by -1: the quotient is out of range, and wraps to the least "
    "integer.",
    "index_clamped": "A start, a size or a branch index was out of range, and the nearest one in range was used.",
    "inf_born": "An op gave an infinity, and none of its operands had one.",
    "nan_born": "An op gave a NaN, and none of its operands had one.",
    "nan_converted": "A NaN was converted to an integer, which gives 0.",
    "promise_broken": "Indices that are stated to be sorted or unique, or parameters that are stated to be equal on "
    "several devices, are not; a compiler may rely on the statement.",
    "shift_out_of_range": "An integer was shifted by its width or more, or by a negative number.",
    "undefined_read": "A value is read that is undefined: elements beyond the data of a dimension, or on this device.",
    "update_dropped": "An update of a scatter was not entirely inside the operand, and was left out.",
    "value_out_of_range": "A value was converted to a type that cannot hold it: it saturates, wraps or becomes "
    "infinite.",
    # runs
    "collective_mismatch": "Two devices meet in one collective and state different things of it.",
    "argument_mismatch": "An argument is not as its parameter declares: the number, the element type or the extents.",
    "infeed_starved": "A device waits for an item of its infeed, and the host has given no more.",
    "interrupted": "The run was interrupted from outside, such as by Ctrl-C.",
    "limit_bytes": "A value would take, or took, more bytes than the limit.",
    "limit_seconds": "The run took more seconds than the limit.",
    "limit_trips": "A loop ran more trips than the limit.",
    "unregistered_target": "A custom call has a target for which no function is registered.",
    "raised": "A function of the user (a feed, an observer, a custom call) raised an exception.",
}
