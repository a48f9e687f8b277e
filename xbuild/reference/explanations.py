"""What each kind of refusal, verdict and stop means, in a sentence."""

from __future__ import annotations

EXPLANATIONS = {
    # shapes
    "arity_mismatch": "An op, or a computation that it calls, has too many or too few operands or parameters.",
    "attribute_length_mismatch": "A list attribute does not have exactly one entry for each dimension or operand.",
    "bad_order": "A list of dimensions is not in ascending order (or in the order that the op states).",
    "dimension_mismatch": "Two operands, or an operand and an attribute, state different extents for one dimension.",
    "dimension_out_of_range": "A dimension number is outside 0..rank-1 of its array.",
    "divisibility": "A dimension must be split into equal parts, but its extent is not a multiple of their number.",
    "duplicate_dimension": "A list of dimension numbers contains a dimension twice.",
    "element_count_mismatch": "The result would have a different number of elements than the operand.",
    "element_type_mismatch": "Operands that must have the same element type do not; use `xb.convert` to convert one.",
    "element_type_unsupported": "The op is not defined for this element type.",
    "index_out_of_range": "A start, limit, size or tuple index is out of range.",
    "invalid_attribute": "An attribute is missing, does not belong to the op, or has a value that the op does not "
    "allow.",
    "invalid_group": "Replica groups or source-target pairs are empty, contain an id twice or a negative id, or "
    "differ in size.",
    "negative_size": "An extent or a size is negative, or would become negative.",
    "non_positive": "A count or a stride is not positive, or a channel number is negative.",
    "non_scalar": "An operand must be a scalar (rank 0), but is an array with dimensions.",
    "not_array": "An operand must be an array, but is a tuple or a token.",
    "not_permutation": "A list must contain every dimension exactly once, but does not.",
    "not_tuple": "An operand must be a tuple, but is an array or a token.",
    "overflow": "The array would have more elements than a signed 64-bit integer can count.",
    "rank_mismatch": "Two operands, or an operand and an attribute, have different ranks.",
    "rank_too_small": "The operand has fewer dimensions than the op needs.",
    "signature_mismatch": "A called computation takes or returns different shapes than its caller needs.",
    "token_expected": "An operand must be a token[], which orders effects, but is not; create one with `xb.after_all`.",
    "too_many_states": "A program has more states, or its data can decide in more ways, than a page of the game can "
    "hold.",
    "tuple_too_large": "A tuple has more arrays, or deeper nesting, than xbuild can read.",
    # types on a mesh
    "already_varying": "A value is cast to varying along a mesh axis along which it already varies.",
    "bilinear_on_unreduced": "Both operands of a product are unreduced along an axis; sum one of them first.",
    "branch_type_mismatch": "Branches of a conditional return values that vary along different mesh axes.",
    "carry_type_mismatch": "A loop-carried value varies along different mesh axes after a trip than before it.",
    "divergent_collective": "A collective along an axis is inside a branch or loop whose condition varies along that "
    "axis.",
    "mixed_axis_state": "A collective along several axes has an operand whose state is not the same along all of them.",
    "nonlinear_on_unreduced": "An op that is not linear has an unreduced operand; sum it first with `xb.mesh.psum`.",
    "nonzero_pad_on_unreduced": "An unreduced value is padded with a nonzero number, which each device would add.",
    "out_spec_not_replicated": "A result varies along a mesh axis that its out_spec does not mention.",
    "state_mismatch": "A value has a different state (varying, unreduced, reduced, invarying) along an axis than the "
    "op needs.",
    "unbound_axis": "A name is not an axis of the mesh, or there is no mesh.",
    "unsupported_cast": "A value cannot be cast from one of these states of a mesh axis to the other.",
    "variance_broken": "Devices may hold different values of an instruction that is declared to be equal along an "
    "axis.",
    # shardings
    "bad_reduction": "A collective of a grid names a reduction that cannot be lowered.",
    "device_index_out_of_range": "A device coordinate is out of range for its grid axis.",
    "device_index_size": "A device index has more or fewer coordinates than the grid has axes.",
    "grid_axes_duplicate": "A list of grid axes contains an axis twice.",
    "grid_axis_duplicated": "A sharding uses a grid axis twice; each part of an axis can shard only one dimension.",
    "grid_axis_negative": "The number of a grid axis is negative; axes are numbered from 0.",
    "grid_axis_out_of_range": "The number of a grid axis is not below the number of axes.",
    "grid_rank_zero": "A grid has no axes.",
    "halo_and_offsets_exclusive": "A sharding has both halo sizes and offsets; it can have only one of them.",
    "halo_count": "A sharding does not have exactly two halo sizes for each sharded dimension.",
    "offsets_decreasing": "The offsets of the parts of a dimension do not increase from 0.",
    "offsets_wrong_size": "A dimension that is sharded into n parts does not have n + 1 offsets.",
    "sharding_conflict": "A value has two sharding annotations, and their order is undefined.",
    "shift_axis_not_in_group": "A shift is along a grid axis that is not one of the axes that form its groups.",
    # derivatives
    "not_differentiable": "An op on the path has no derivative, or the derivative is with respect to a value that has "
    "none.",
    # building
    "builder_finished": "A builder that has been built cannot record more ops or be built again.",
    "duplicate_parameter": "Two parameters of one computation have the same number.",
    "foreign_value": "A value belongs to another builder; a region can use only its own parameters.",
    "immutable": "An element or attribute of a value cannot be assigned; values are immutable, and ops return new "
    "ones.",
    "invalid_name": "HLO text does not allow this name: use letters, digits, `_`, `.` and `-`, no leading digit, no "
    "word of HLO.",
    "invalid_operand": "An operand is not a value of a builder, and not a number or array that could be a constant.",
    "missing_parameter": "The parameter numbers of a computation are not 0, 1, 2 and so on, or it has no instructions.",
    "nested_too_deep": "Computations call each other through more levels than xbuild can process.",
    "no_builder": "No operand has a builder that could record the op; pass one with `builder=`.",
    "not_a_computation": "A region must be a computation, or a function that returns a value.",
    "not_concrete": "Python or NumPy needs the number behind a value, which only a run computes.",
    "not_copied": "A builder cannot be copied, and a program cannot be pickled; store it as HLO text and read that "
    "again.",
    "too_many_calls": "A program must be written out once for each call, and nested calls would make it too long.",
    # replicated computations
    "duplicate_replica": "A group assignment contains a replica twice.",
    "duplicate_source": "Source-target pairs contain a replica as source twice.",
    "duplicate_target": "Source-target pairs contain a replica as target twice.",
    "maximum_too_small": "A maximum shape is smaller than an input of one of the replicas.",
    "missing_replica": "A group assignment does not contain one of the replicas.",
    "nested_replicate": "A replicated computation, or its part on the host, is inside another replicated computation.",
    "no_replicas": "The list of inputs is empty, so there are no replicas.",
    "ragged_groups": "The rows of a group assignment differ in length, so they do not form a tensor.",
    "replica_out_of_range": "A group, a pair or a placement names a replica that the program does not have.",
    "split_count_mismatch": "The number of pieces that a tensor is split into is not the number of replicas in each "
    "group.",
    "structure_mismatch": "Two nested structures must have the same form, but do not.",
    # schedules
    "bad_pairs": "Source-target pairs name devices that do not exist, or a send and its recv state different pairs.",
    "bad_schedule": "A schedule runs an instruction before one that it depends on, runs it twice, or omits it.",
    "channel_kind_mix": "Transfers of different kinds use the same channel id.",
    "companion_conflict": "Loops or conditionals of several devices must run together, but their order prevents it.",
    "cycle": "Instructions depend on each other in a cycle, so none of them can run first.",
    "data_dependent": "Data decide whether the program completes; the report states the condition.",
    "deadlock": "Devices wait for each other, or for a device that never arrives, so none of them can proceed.",
    "device_out_of_range": "A group or a pair names a replica, partition or device that the program does not have.",
    "disallowed_computation": "A computation that must be pure, such as a reducer or a loop condition, communicates.",
    "done_channel_mismatch": "A send-done or recv-done uses a different channel than the send or recv that it "
    "completes.",
    "duplicate_channel": "Two sends, or two recvs, of one program use the same channel id.",
    "done_kind_mismatch": "A done completes a start of a different kind.",
    "duplicate_done": "A send, a recv or another start is completed twice.",
    "group_disagreement": "Devices that meet in one collective state different replica groups.",
    "host_flag_mismatch": "A send or recv is a host transfer and its done is not, or the reverse.",
    "mispaired": "A runtime pairs two calls by their order, but the program names different channels or collectives.",
    "missing_done": "A send, a recv or another start is never completed.",
    "missing_participant": "A replica that runs a collective is in none of its groups.",
    "missing_recv": "A send has no recv on its channel.",
    "missing_send": "A recv has no send on its channel.",
    "missing_start": "A done has no start as its operand.",
    "nest_mismatch": "A send and its recv are nested in different numbers of loops and conditionals.",
    "not_partitioned": "This is one program for all devices together; XLA's partitioner has not made one for each "
    "device yet.",
    "peer_mismatch": "The two ends of a channel name different devices as each other's peer.",
    "race": "An instruction overwrites a buffer before all readers of its value have ended, or while a start still "
    "writes to it.",
    "reducer_mismatch": "Programs meet in a collective, but use different reducers.",
    "self_send": "A device sends to itself.",
    "shape_mismatch": "Two statements of a shape differ: a send and its recv, or HLO text and shape inference.",
    "start_misused": "The result of a start is used by an instruction other than its done.",
    "trip_count_mismatch": "Loops of several devices must run together, but have different trip counts.",
    # text
    "duplicate_attribute": "HLO text states an attribute of an instruction twice.",
    "duplicate_name": "Two instructions of a computation, or two computations, have the same name.",
    "elided_constant": "HLO text omits the elements of a constant (`{...}`); print it with large constants.",
    "invalid_literal": "A word in a constant is not a number of its element type, or is out of range.",
    "missing_attribute": "HLO text lacks an attribute that the op needs.",
    "not_in_stablehlo": "StableHLO cannot express an op, a type or a constant; see the table in docs/stablehlo.md.",
    "missing_shape": "HLO text states no shape for a result whose shape cannot be inferred.",
    "syntax": "HLO text has a word that its grammar does not allow here.",
    "undefined_name": "A name of an instruction or a computation is used before its definition, or is never defined.",
    "unknown_attribute": "HLO text gives an op an attribute that the op does not have.",
    "unknown_opcode": "HLO text has an opcode that HLO or xbuild does not know.",
    # edits
    "condition_not_held": "The condition of a reduction does not hold for the program that is to be reduced.",
    "in_use": "An instruction cannot be removed because others use it, or because it is the root of its computation.",
    "not_a_call": "Only a call can be inlined, and this instruction is another op.",
    "used_too_early": "An edit would place an instruction before one that it depends on.",
    # other engines
    "engine_failed": "The process in which real XLA ran the program died; the message contains its last output.",
    "engine_unsupported": "Real XLA, or this build of it, cannot run the program.",
    "missing_extra": "A required library is not installed; the message names the extra that installs it.",
    "package_conflict": "A package `interpreter` of another project is installed in place of xbuild's.",
    # strict runs
    "division_by_zero": "An integer was divided by zero: all bits of the quotient are ones, and the remainder is the "
    "dividend.",
    "division_overflow": "The smallest integer was divided by -1: the quotient is out of range, and wraps to the "
    "smallest integer.",
    "index_clamped": "A start, a size or a branch index was out of range, so the nearest one in range was used.",
    "inf_born": "An op returned an infinity although none of its operands had one.",
    "nan_born": "An op returned a NaN although none of its operands had one.",
    "nan_converted": "A NaN was converted to an integer; the result is 0.",
    "promise_broken": "Indices that are declared sorted or unique, or parameters that are declared equal on several "
    "devices, are not; a compiler may rely on the declaration.",
    "shift_out_of_range": "An integer was shifted by its width or more, or by a negative number.",
    "undefined_read": "An undefined value was read: elements beyond the dynamic size of a dimension, or a value that "
    "this device does not have.",
    "update_dropped": "An update of a scatter was not entirely inside the operand, and was dropped.",
    "value_out_of_range": "A value was converted to a type that cannot hold it: it saturates, wraps or becomes "
    "infinite.",
    # runs
    "collective_mismatch": "Two devices meet in one collective, but disagree about it.",
    "argument_mismatch": "An argument does not match its parameter: the number, the element type or the extents "
    "differ.",
    "infeed_starved": "A device waits for an infeed item, but the host has no more.",
    "interrupted": "The run was interrupted, for example by Ctrl-C.",
    "limit_bytes": "A value takes, or would take, more bytes than the limit.",
    "limit_seconds": "The run took longer than the limit.",
    "limit_trips": "A loop ran more trips than the limit.",
    "transfer_mismatch": "A device sent a value of one shape to a recv of another. Messages on one channel arrive in "
    "the order of the sends.",
    "unregistered_target": "No function is registered for the target of a custom call.",
    "raised": "A function of the user (a feed, an observer, a custom call) raised an exception.",
}
