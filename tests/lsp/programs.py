"""Texts that the tests of the language server open."""

HLO = """HloModule train, num_partitions=2, entry_computation_layout={(f32[8]{0})->f32[]}

FileNames
1 "model/layer.py"

FunctionNames
1 "loss"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, /*second*/ %b)
}

%below (state: (s32[], f32[8])) -> pred[] {
  %state = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %five = s32[] constant(5)
  ROOT %less = pred[] compare(%i, %five), direction=LT
}

%step (state: (s32[], f32[8])) -> (s32[], f32[8]) {
  %state = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %x = f32[8]{0} get-tuple-element(%state), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %both = (s32[], f32[8]{0}) tuple(%next, %x)
}

ENTRY %main (x: f32[8]) -> f32[] {
  %x = f32[8]{0} parameter(0), sharding={devices=[2]<=[2]}, metadata={op_name="x %add"}
  %zero = f32[] constant(0), metadata={op_name="zero" source_file="/home/me/model.py" source_line=7}
  %start = s32[] constant(0)
  %init = (s32[], f32[8]{0}) tuple(%start, %x), control-predecessors={%zero}
  %loop = (s32[], f32[8]{0}) while(%init), condition=%below, body=%step
  %last = f32[8]{0} get-tuple-element(%loop), index=1, metadata={op_name="y" stack_frame_id=1}
  ROOT %total = f32[] reduce(%last, %zero), dimensions={0}, to_apply=%add
}
"""

INLINE = """ENTRY e {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  r = f32[] reduce(x, z), to_apply={ p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = add(p, q) }, dimensions={0}
  ROOT y = f32[] negate(r)
}
"""

PAIRS = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2},{2,3},{3,0}}"}'

STUCK = f"""HloModule ring, is_scheduled=true, replica_count=4

ENTRY ring {{
  x = f32[4] parameter(0)
  t = token[] after-all()
  sent = (f32[4], u32[], token[]) send(x, t), channel_id=1, {PAIRS}
  posted = (f32[4], u32[], token[]) recv(t), channel_id=1, {PAIRS}
  got = (f32[4], token[]) recv-done(posted), channel_id=1
  y = f32[4] get-tuple-element(got), index=0
  done = token[] send-done(sent), channel_id=1
  ROOT sum = f32[4] add(x, y)
}}
"""

MLIR = """module @jit_f attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%arg0: tensor<2xf32>, %arg1 : tensor<2xf32>) -> tensor<2xf32> {
    %0 = call @scale(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1:2 = stablehlo.while(%iterArg = %c, %iterArg_1 = %0) : tensor<i32>, tensor<2xf32>
     cond {
      %2 = stablehlo.compare LT, %iterArg, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = stablehlo.add %iterArg, %one : tensor<i32>
      stablehlo.return %2, %iterArg_1 : tensor<i32>, tensor<2xf32>
    }
    %total = stablehlo.add %1#1, %arg1 : tensor<2xf32> loc("add"("/home/me/model.py":9:3))
    return %total : tensor<2xf32>
  }
  func.func private @scale(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""
