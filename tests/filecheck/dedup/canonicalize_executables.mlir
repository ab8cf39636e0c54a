// RUN: fuseline opt %s -p canonicalize-executables --verify-each | filecheck %s
// RUN: fuseline opt %s -p canonicalize-executables,canonicalize-executables --verify-each | filecheck %s
// RUN: fuseline opt %s -p canonicalize-executables,deduplicate-executables --verify-each | filecheck %s --check-prefix SHARED
// RUN: fuseline opt %s -p "canonicalize-executables{level=none}" --verify-each | filecheck %s --check-prefix NONE
// RUN: not fuseline opt %s -p "canonicalize-executables{level=all}" | filecheck %s --check-prefix LEVEL

// LEVEL: E0304
// LEVEL: level is 'all'

// Operands of sums and products, inputs and arguments come in one order, at the calls too; those of differences stay.
// CHECK: func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %o: tensor<4xf32>)
// CHECK: flow.dispatch @first::@first(%[[P:[xy]]], %[[Q:[xy]]], %o)
// CHECK: flow.dispatch @second::@second(%[[P]], %[[Q]], %o)
// CHECK: func.func @first(%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>, %o: tensor<4xf32>)
// CHECK: ins(%[[A]], %[[B]] : tensor<4xf32>, tensor<4xf32>)
// CHECK: arith.mulf %e, %two
// CHECK: func.func @second(%[[A2:.*]]: tensor<4xf32>, %[[B2:.*]]: tensor<4xf32>, %o: tensor<4xf32>)
// CHECK: ins(%[[A2]], %[[B2]] : tensor<4xf32>, tensor<4xf32>)
// CHECK: arith.mulf %e, %two
// Inputs of symbolic sizes stay: of those that spell a loop in several ways the first one counts.
// CHECK: func.func @unequal(%a: tensor<?xf32>
// CHECK: ins(%a, %b : tensor<?xf32>, tensor<?xf32>)
// What the loops say of an operand is said of its new number.
// CHECK: func.func @along(%[[P:.*]]: tensor<4xf32>, %[[Q:.*]]: tensor<4xf32>, %o: tensor<4xf32>)
// CHECK-SAME: along = [array<i64: 0, 0>, array<i64: 1, 1>]
// CHECK: ins(%[[P]], %[[Q]] : tensor<4xf32>, tensor<4xf32>)
// CHECK: ins(%[[Q]], %[[P]] : tensor<4xf32>, tensor<4xf32>)
// SHARED-COUNT-2: flow.dispatch @first
// SHARED: flow.dispatch @third
// SHARED: flow.executable private @first
// SHARED-NOT: @second
// SHARED: flow.executable private @third
// NONE: flow.dispatch @second::@second(%y, %x, %o)
// NONE: func.func @second
// NONE: arith.mulf %two, %e
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %o: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = flow.dispatch @first::@first(%x, %y, %o) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = flow.dispatch @second::@second(%y, %x, %o) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = flow.dispatch @third::@third(%x, %y, %o) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
flow.executable private @first {
  flow.executable.export public @first
  builtin.module {
    func.func @first(%a: tensor<4xf32>, %b: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%x: f32, %c: f32, %out: f32):
        %e = math.exp %x : f32
        %two = arith.constant 2.0 : f32
        %v = arith.mulf %e, %two : f32
        %w = arith.addf %v, %c : f32
        %u = arith.subf %w, %x : f32
        linalg.yield %u : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
  }
}
flow.executable private @second {
  flow.executable.export public @second
  builtin.module {
    func.func @second(%a: tensor<4xf32>, %b: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%c: f32, %x: f32, %out: f32):
        %two = arith.constant 2.0 : f32
        %e = math.exp %x : f32
        %v = arith.mulf %two, %e : f32
        %w = arith.addf %c, %v : f32
        %u = arith.subf %w, %x : f32
        linalg.yield %u : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
  }
}
flow.executable private @third {
  flow.executable.export public @third
  builtin.module {
    func.func @third(%a: tensor<4xf32>, %b: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%x: f32, %c: f32, %out: f32):
        %e = math.exp %x : f32
        %two = arith.constant 2.0 : f32
        %v = arith.mulf %e, %two : f32
        %w = arith.addf %v, %c : f32
        %u = arith.subf %x, %w : f32
        linalg.yield %u : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
  }
}
flow.executable private @unequal {
  flow.executable.export public @unequal
  builtin.module {
    func.func @unequal(%a: tensor<?xf32> {fuseline.dims = ["s0"]}, %b: tensor<?xf32> {fuseline.dims = ["s1"]}, %o: tensor<?xf32> {fuseline.dims = ["s0"]}) -> tensor<?xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%o : tensor<?xf32>) {
      ^bb0(%x: f32, %y: f32, %out: f32):
        %u = arith.subf %y, %x : f32
        linalg.yield %u : f32
      } -> tensor<?xf32>
      func.return %r : tensor<?xf32>
    }
  }
}
flow.executable private @along {
  flow.executable.export public @along
  builtin.module {
    func.func @along(%a: tensor<4xf32>, %b: tensor<4xf32>, %o: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {fuseline.loops = {grids = [["4"]], members = [array<i64: 0>, array<i64: 0>], along = [array<i64: 0, 1>, array<i64: 1, 0>]}} {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%b, %a : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%y: f32, %x: f32, %out: f32):
        %u = arith.subf %x, %y : f32
        linalg.yield %u : f32
      } -> tensor<4xf32>
      %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%x: f32, %y: f32, %out: f32):
        %u = arith.divf %y, %x : f32
        linalg.yield %u : f32
      } -> tensor<4xf32>
      func.return %r, %s : tensor<4xf32>, tensor<4xf32>
    }
  }
}
