"""Names of ops in XlaBuilder and in documents: one table, from which documentation and `xbuild ops` are made."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from ..core.op import OPS


@frozen
class OpNames:
    """An op's opcode, its name in `xb` and in XlaBuilder, and its heading in the document that defines it.

    The heading is of XLA's Operation Semantics, or `StableHLO, x` or `xla_builder.h` where that document has none.
    """

    opcode: str
    name: str
    xla_builder: str
    heading: str

    @property
    def spelling(self) -> str:
        return self.opcode.replace("_", "-")


_UNARY = "Element-wise unary functions"
_ARITHMETIC = "Element-wise binary arithmetic operations"
_HEADER = "xla_builder.h"

# opcode (xb's name where Python keeps the word for itself: with an underscore), XlaBuilder's name, heading
_TABLE = f"""
abs                       Abs                                 {_UNARY}
acos                      Acos                                {_HEADER}
acosh                     Acosh                               {_HEADER}
add                       Add                                 {_ARITHMETIC}
add_dependency            AddDependency                       {_HEADER}
after_all                 AfterAll                            {_HEADER}
all_gather                AllGather                           StableHLO, all_gather
all_gather_done           -                                   HloOpcode
all_gather_start          -                                   HloOpcode
all_reduce                AllReduce                           CrossReplicaSum
all_reduce_done           -                                   HloOpcode
all_reduce_start          -                                   HloOpcode
all_to_all                AllToAll                            AllToAll
and_                      And                                 {_ARITHMETIC}
asin                      Asin                                {_HEADER}
asinh                     Asinh                               {_HEADER}
async_done                -                                   StableHLO, async_done
async_start               -                                   StableHLO, async_start
async_update              -                                   HloOpcode
atan2                     Atan2                               StableHLO, atan2
atanh                     Atanh                               {_HEADER}
batch_norm_grad           BatchNormGrad                       BatchNormGrad
batch_norm_inference      BatchNormInference                  BatchNormInference
batch_norm_training       BatchNormTraining                   BatchNormTraining
bitcast                   -                                   HloOpcode
bitcast_convert           BitcastConvertType                  BitcastConvertType
broadcast                 BroadcastInDim                      Broadcast
call                      Call                                Call
cbrt                      Cbrt                                StableHLO, cbrt
ceil                      Ceil                                {_UNARY}
cholesky                  Cholesky                            StableHLO, cholesky
clamp                     Clamp                               Clamp
collective_broadcast      CollectiveBroadcast                 StableHLO, collective_broadcast
collective_permute        CollectivePermute                   StableHLO, collective_permute
collective_permute_done   -                                   HloOpcode
collective_permute_start  -                                   HloOpcode
compare                   Compare                             Element-wise comparison operations
complex                   Complex                             StableHLO, complex
concatenate               ConcatInDim                         Concatenate
conditional               Conditional                         Conditional
constant                  ConstantLiteral                     {_HEADER}
convert                   ConvertElementType                  ConvertElementType
convolution               ConvGeneralDilated                  ConvWithGeneralPadding (convolution)
copy                      Copy                                {_HEADER}
copy_done                 -                                   HloOpcode
copy_start                -                                   HloOpcode
cosh                      Cosh                                {_HEADER}
cosine                    Cos                                 {_UNARY}
count_leading_zeros       Clz                                 StableHLO, count_leading_zeros
custom_call               CustomCall                          CustomCall
divide                    Div                                 {_ARITHMETIC}
domain                    -                                   HloOpcode
dot                       DotGeneral                          DotGeneral
dynamic_reshape           DynamicReshape                      StableHLO, dynamic_reshape
dynamic_slice             DynamicSlice                        DynamicSlice
dynamic_update_slice      DynamicUpdateSlice                  DynamicUpdateSlice
erf                       Erf                                 {_HEADER}
exponential               Exp                                 {_UNARY}
exponential_minus_one     Expm1                               StableHLO, exponential_minus_one
fft                       Fft                                 StableHLO, fft
floor                     Floor                               {_UNARY}
fusion                    -                                   HloOpcode
gather                    Gather                              Gather
get_dimension_size        GetDimensionSize                    StableHLO, get_dimension_size
get_tuple_element         GetTupleElement                     GetTupleElement
imag                      Imag                                StableHLO, imag
infeed                    InfeedWithToken                     Infeed
iota                      Iota                                Iota
is_finite                 IsFinite                            {_UNARY}
log                       Log                                 {_UNARY}
log_plus_one              Log1p                               StableHLO, log_plus_one
logistic                  Logistic                            StableHLO, logistic
map                       Map                                 Map
maximum                   Max                                 {_ARITHMETIC}
minimum                   Min                                 {_ARITHMETIC}
mulhi                     -                                   HloOpcode
multiply                  Mul                                 {_ARITHMETIC}
negate                    Neg                                 {_UNARY}
not_                      Not                                 {_UNARY}
opt_barrier               OptimizationBarrier                 StableHLO, optimization_barrier
or_                       Or                                  {_ARITHMETIC}
outfeed                   OutfeedWithToken                    StableHLO, outfeed
pad                       Pad                                 Pad
parameter                 Parameter                           {_HEADER}
partition_id              PartitionId                         StableHLO, partition_id
popcnt                    PopulationCount                     StableHLO, popcnt
power                     Pow                                 StableHLO, power
ragged_all_to_all         RaggedAllToAll                      {_HEADER}
ragged_dot                RaggedDot                           {_HEADER}
real                      Real                                StableHLO, real
recv                      Recv                                Recv
recv_done                 Recv                                Recv
reduce                    Reduce                              Reduce
reduce_precision          ReducePrecision                     ReducePrecision
reduce_scatter            ReduceScatter                       StableHLO, reduce_scatter
reduce_window             ReduceWindowWithGeneralPadding      ReduceWindow
remainder                 Rem                                 {_ARITHMETIC}
replica_id                ReplicaId                           StableHLO, replica_id
reshape                   Reshape                             Reshape
reverse                   Rev                                 Rev (reverse)
rng                       RngUniform                          RngUniform
rng_bit_generator         RngBitGenerator                     StableHLO, rng_bit_generator
rng_get_and_update_state  -                                   HloOpcode
round_nearest_afz         Round                               StableHLO, round_nearest_afz
round_nearest_even        RoundNearestEven                    StableHLO, round_nearest_even
rsqrt                     Rsqrt                               StableHLO, rsqrt
scaled_dot                ScaledDot                           {_HEADER}
scan                      Scan                                {_HEADER}
scatter                   Scatter                             Scatter
select                    Select                              Select
select_and_scatter        SelectAndScatterWithGeneralPadding  SelectAndScatter
send                      Send                                Send
send_done                 Send                                Send
set_dimension_size        SetDimensionSize                    {_HEADER}
shift_left                ShiftLeft                           StableHLO, shift_left
shift_right_arithmetic    ShiftRightArithmetic                StableHLO, shift_right_arithmetic
shift_right_logical       ShiftRightLogical                   StableHLO, shift_right_logical
sign                      Sign                                {_UNARY}
sine                      Sin                                 StableHLO, sine
sinh                      Sinh                                {_HEADER}
slice                     Slice                               Slice
sort                      Sort                                Sort
sqrt                      Sqrt                                StableHLO, sqrt
stochastic_convert        -                                   HloOpcode
subtract                  Sub                                 {_ARITHMETIC}
tan                       Tan                                 StableHLO, tan
tanh                      Tanh                                {_UNARY}
topk                      TopK                                {_HEADER}
transpose                 Transpose                           Transpose
triangular_solve          TriangularSolve                     StableHLO, triangular_solve
tuple_                    Tuple                               Tuple
while_                    While                               While
xor                       Xor                                 StableHLO, xor
"""


def _rows() -> Iterator[OpNames]:
    for line in _TABLE.strip().splitlines():
        name, xla_builder, heading = line.split(maxsplit=2)
        yield OpNames(name.strip("_"), name, "" if xla_builder == "-" else xla_builder, heading)


class _Table(dict[str, OpNames]):
    """Names by opcode; an op without a row has the name of its declaration alone."""

    def __missing__(self, opcode: str) -> OpNames:
        return OpNames(opcode, OPS[opcode].declaration.__name__, "", "")


NAMES: dict[str, OpNames] = _Table((row.opcode, row) for row in _rows())
