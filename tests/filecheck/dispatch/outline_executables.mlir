// RUN: fuseline opt %s -p outline-executables --split-input-file --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p outline-executables,outline-executables --split-input-file --verify-each --print-locations | filecheck %s

// What a region captures becomes arguments: tensors in order of use, constants marked, then one index for every symbol, renamed, with its bounds.
// Sizes that the body captures are computed again from it. The dispatch is where the region was, with its attributes and location;
// the loops that its members share go to the entry function.
// CHECK-LABEL: func.func @sizes
// CHECK: %w = arith.constant dense
// CHECK: %twice = arith.muli
// CHECK: %r = flow.dispatch @sizes_dispatch_0_elementwise::@sizes_dispatch_0_elementwise(%w, %x, %{{.*}}) {{.*}}fuseline.members = ["m"]{{.*}} loc("work")
// CHECK: func.return %r
// CHECK: flow.executable private @sizes_dispatch_0_elementwise {
// CHECK: func.func @sizes_dispatch_0_elementwise({{.*}}: tensor<2xf32> {fuseline.constant}{{.*}}: tensor<?x2xf32> {fuseline.dims = ["s0", "2"]}{{.*}}: index {{.*}}fuseline.name = "s0"{{.*}} -> tensor<?x2xf32> attributes {fuseline.loops = {grids = {{\[\[}}"s0", "2"]], members = [array<i64: 0, 1>]}} {
// CHECK: arith.muli
// CHECK: linalg.generic
// CHECK: func.return
// CHECK: } loc("work")
func.func @sizes(%x: tensor<?x2xf32> {fuseline.dims = ["rows", "2"]}) -> tensor<?x2xf32> {
  %w = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c0 : tensor<?x2xf32>
  %twice = arith.muli %n, %c2 : index
  %r = flow.dispatch.region -> (tensor<?x2xf32>{%n}) attributes {fuseline.members = ["m"], fuseline.loops = {grids = [["rows", "2"]], members = [array<i64: 0, 1>]}} {
    %v = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%w, %x : tensor<2xf32>, tensor<?x2xf32>) outs(%x : tensor<?x2xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %i = arith.index_cast %twice : index to i64
      %f = arith.sitofp %i : i64 to f32
      %s = arith.addf %a, %b : f32
      %t = arith.mulf %s, %f : f32
      linalg.yield %t : f32
    } -> tensor<?x2xf32>
    flow.return %v : tensor<?x2xf32>
  } loc("work")
  return %r : tensor<?x2xf32>
}
