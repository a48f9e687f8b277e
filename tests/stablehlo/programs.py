"""Programs of StableHLO text, each with the HLO text of the same program."""

from __future__ import annotations

from attrs import frozen


@frozen
class Pair:
    """Two spellings of one program; `stablehlo` is the body of a function `@main`."""

    id: str
    signature: str
    stablehlo: str
    hlo: str
    rest: str = ""

    @property
    def text(self) -> str:
        return f"func.func @main{self.signature} {{\n{self.stablehlo}\n}}\n{self.rest}"


ONE = "(%x: tensor<4xf32>) -> tensor<4xf32>"
_GENERIC_SORT = """  %0:2 = "stablehlo.sort"(%x, %i) <{dimension = -1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %1 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %0#1 : tensor<4xi32>"""

PAIRS = [
    Pair(
        "chain",
        ONE,
        """  %0 = stablehlo.add %x, %x : tensor<4xf32>
  %1 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>""",
        "ENTRY main { x = f32[4] parameter(0) a = f32[4] add(x, x) ROOT t = f32[4] tanh(a) }",
    ),
    Pair(
        "splat-is-a-broadcast",
        ONE,
        """  %c = stablehlo.constant dense<2.5> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>""",
        """ENTRY main { x = f32[4] parameter(0) c = f32[] constant(2.5)
  b = f32[4] broadcast(c), dimensions={} ROOT m = f32[4] multiply(x, b) }""",
    ),
    Pair(
        "reduce-applies",
        "(%x: tensor<2x3xf32>) -> tensor<2xf32>",
        """  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>""",
        """sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY main { x = f32[2,3] parameter(0) c = f32[] constant(0) ROOT r = f32[2] reduce(x, c), dimensions={1}, to_apply=sum }""",
    ),
    Pair(
        "reduce-with-a-region-of-two",
        "(%x: tensor<3xf32>, %i: tensor<3xi32>) -> (tensor<f32>, tensor<i32>)",
        """  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.reduce(%x init: %c), (%i init: %z) across dimensions = [0] : (tensor<3xf32>, tensor<3xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%k: tensor<i32>, %l: tensor<i32>)  {
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    %2 = stablehlo.add %k, %l : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<f32>, tensor<i32>""",
        """both { a = f32[] parameter(0) k = s32[] parameter(1) b = f32[] parameter(2) l = s32[] parameter(3)
  m = f32[] maximum(a, b) s = s32[] add(k, l) ROOT t = (f32[], s32[]) tuple(m, s) }
ENTRY main { x = f32[3] parameter(0) i = s32[3] parameter(1) c = f32[] constant(-inf) z = s32[] constant(0)
  r = (f32[], s32[]) reduce(x, i, c, z), dimensions={0}, to_apply=both
  v = f32[] get-tuple-element(r), index=0 w = s32[] get-tuple-element(r), index=1 ROOT t = (f32[], s32[]) tuple(v, w) }""",
    ),
    Pair(
        "while-with-a-captured-value",
        "(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32>",
        """  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %v = %x) : tensor<i32>, tensor<4xf32>
   cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.multiply %v, %x : tensor<4xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>""",
        """cond { s = (s32[], f32[4], s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1 n = s32[] get-tuple-element(s), index=2
  x = f32[4] get-tuple-element(s), index=3 ROOT p = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[4], s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1 n = s32[] get-tuple-element(s), index=2
  x = f32[4] get-tuple-element(s), index=3 one = s32[] constant(1) j = s32[] add(i, one) w = f32[4] multiply(v, x)
  ROOT t = (s32[], f32[4], s32[], f32[4]) tuple(j, w, n, x) }
ENTRY main { n = s32[] parameter(0) x = f32[4] parameter(1) c = s32[] constant(0)
  t = (s32[], f32[4], s32[], f32[4]) tuple(c, x, n, x)
  l = (s32[], f32[4], s32[], f32[4]) while(t), condition=cond, body=body
  g0 = s32[] get-tuple-element(l), index=0 ROOT g = f32[4] get-tuple-element(l), index=1 }""",
    ),
    Pair(
        "while-of-one-value",
        "(%n: tensor<i32>) -> tensor<i32>",
        """  %0 = stablehlo.while(%i = %n) : tensor<i32>
   cond {
    %c = stablehlo.constant dense<9> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %i : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }
  return %0 : tensor<i32>""",
        """cond { i = s32[] parameter(0) c = s32[] constant(9) ROOT p = pred[] compare(i, c), direction=LT }
body { i = s32[] parameter(0) ROOT j = s32[] add(i, i) }
ENTRY main { n = s32[] parameter(0) ROOT l = s32[] while(n), condition=cond, body=body }""",
    ),
    Pair(
        "if-with-captured-values",
        "(%p: tensor<i1>, %x: tensor<f32>, %y: tensor<f32>) -> tensor<f32>",
        """  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }, {
    stablehlo.return %y : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>""",
        """yes { s = (f32[], f32[]) parameter(0) x = f32[] get-tuple-element(s), index=0
  y = f32[] get-tuple-element(s), index=1 ROOT a = f32[] add(x, y) }
no { ROOT y = f32[] parameter(0) }
ENTRY main { p = pred[] parameter(0) x = f32[] parameter(1) y = f32[] parameter(2) t = (f32[], f32[]) tuple(x, y)
  ROOT c = f32[] conditional(p, t, y), true_computation=yes, false_computation=no }""",
    ),
    Pair(
        "case-without-and-with-a-captured-value",
        "(%k: tensor<i32>, %x: tensor<f32>) -> tensor<f32>",
        """  %0 = "stablehlo.case"(%k) ({
    %c = stablehlo.constant dense<1.0> : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }, {
    stablehlo.return %x : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>""",
        """first { s = () parameter(0) ROOT c = f32[] constant(1) }
second { ROOT x = f32[] parameter(0) }
ENTRY main { k = s32[] parameter(0) x = f32[] parameter(1) t = () tuple()
  ROOT c = f32[] conditional(k, t, x), branch_computations={first, second} }""",
    ),
    Pair(
        "a-constant-from-outside-of-a-region",
        "(%x: tensor<4xf32>, %i: tensor<4xi32>) -> tensor<4xf32>",
        """  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>):
    %1 = stablehlo.multiply %a, %half : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>""",
        """f { a = f32[] parameter(0) h = f32[] constant(0.5) ROOT m = f32[] multiply(a, h) }
ENTRY main { x = f32[4] parameter(0) i = s32[4] parameter(1) h = f32[] constant(0.5)
  ROOT r = f32[4] map(x), dimensions={0}, to_apply=f }""",
    ),
    Pair(
        "sort-of-two",
        "(%x: tensor<4xf32>, %i: tensor<4xi32>) -> tensor<4xi32>",
        _GENERIC_SORT,
        """gt { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3)
  ROOT p = pred[] compare(a, b), direction=GT, type=FLOAT }
ENTRY main { x = f32[4] parameter(0) i = s32[4] parameter(1)
  s = (f32[4], s32[4]) sort(x, i), dimensions={0}, is_stable=true, to_apply=gt
  v = f32[4] get-tuple-element(s), index=0 ROOT w = s32[4] get-tuple-element(s), index=1 }""",
    ),
    Pair(
        "calls-and-several-results",
        "(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)",
        """  %0:2 = call @twice(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %1 = func.call @"a name"(%0#1) : (tensor<4xf32>) -> tensor<4xf32>
  return %0#0, %1 : tensor<4xf32>, tensor<4xf32>""",
        """twice { x = f32[4] parameter(0) n = f32[4] negate(x) ROOT t = (f32[4], f32[4]) tuple(n, x) }
one { x = f32[4] parameter(0) ROOT a = f32[4] abs(x) }
ENTRY main { x = f32[4] parameter(0) c = (f32[4], f32[4]) call(x), to_apply=twice
  a = f32[4] get-tuple-element(c), index=0 b = f32[4] get-tuple-element(c), index=1
  d = f32[4] call(b), to_apply=one ROOT t = (f32[4], f32[4]) tuple(a, d) }""",
        """func.func private @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.negate %x : tensor<4xf32>
  return %0, %x : tensor<4xf32>, tensor<4xf32>
}
func.func private @"a name"(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.abs %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}""",
    ),
    Pair(
        "products-and-windows",
        "(%x: tensor<1x4x4x2xf32>, %k: tensor<3x3x2x5xf32>, %w: tensor<5x6xf32>) -> tensor<1x2x2x6xf32>",
        """  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]} : (tensor<1x4x4x2xf32>, tensor<3x3x2x5xf32>) -> tensor<1x2x2x5xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [3] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x2x2x5xf32>, tensor<5x6xf32>) -> tensor<1x2x2x6xf32>
  return %1 : tensor<1x2x2x6xf32>""",
        """ENTRY main { x = f32[1,4,4,2] parameter(0) k = f32[3,3,2,5] parameter(1) w = f32[5,6] parameter(2)
  c = f32[1,2,2,5] convolution(x, k), window={size=3x3 stride=2x2 pad=1_1x0_1}, dim_labels=b01f_01io->b01f, operand_precision={highest,default}
  ROOT d = f32[1,2,2,6] dot(c, w), lhs_contracting_dims={3}, rhs_contracting_dims={0} }""",
    ),
    Pair(
        "slices-and-shapes",
        "(%x: tensor<4x6xf32>, %i: tensor<i32>) -> tensor<6x3xf32>",
        """  %0 = stablehlo.slice %x [0:4:2, 1:4] : (tensor<4x6xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.dynamic_slice %x, %i, %i, sizes = [4, 3] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
  %3 = stablehlo.reverse %2, dims = [1] : tensor<6x3xf32>
  return %3 : tensor<6x3xf32>""",
        """ENTRY main { x = f32[4,6] parameter(0) i = s32[] parameter(1) s = f32[2,3] slice(x), slice={[0:4:2], [1:4:1]}
  d = f32[4,3] dynamic-slice(x, i, i), dynamic_slice_sizes={4,3} c = f32[6,3] concatenate(s, d), dimensions={0}
  ROOT r = f32[6,3] reverse(c), dimensions={1} }""",
    ),
]
