// RUN: fuseline opt %s -p constants-to-operands --verify-each | filecheck %s
// RUN: fuseline opt %s -p constants-to-operands,constants-to-operands --verify-each | filecheck %s
// RUN: fuseline opt %s -p "constants-to-operands,deduplicate-executables{level=constants}" --verify-each | filecheck %s --check-prefix SHARED
// RUN: fuseline opt %s -p "constants-to-operands{level=exact}" --verify-each | filecheck %s --check-prefix EXACT
// RUN: not fuseline opt %s -p "constants-to-operands{level=all}" | filecheck %s --check-prefix LEVEL

// LEVEL: E0304
// LEVEL: level is 'all'

// What differs in equal code becomes one operand, wherever the constants stand and however many read it; what is equal
// in both stays, as does what no other executable has, and what an op yields.
// CHECK: func.func @main
// CHECK-DAG: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<f32>
// CHECK-DAG: %[[THREE:.*]] = arith.constant dense<3.000000e+00> : tensor<f32>
// CHECK: flow.dispatch @first::@first(%x, %o, %[[TWO]])
// CHECK: flow.dispatch @second::@second(%{{.*}}, %o, %[[THREE]])
// CHECK: flow.dispatch @alone::@alone(%{{.*}}, %o) :
// CHECK: flow.dispatch @zero::@zero(%{{.*}}, %o) :
// CHECK: flow.dispatch @first::@first(%{{.*}}, %o, %[[TWO]])
// CHECK: func.func @first(%a: tensor<4xf32>, %o: tensor<4xf32>, %[[ARG:.*]]: tensor<f32> {fuseline.constant, fuseline.scalar})
// CHECK-NEXT: %[[READ:.*]] = tensor.extract %[[ARG]][] : tensor<f32>
// CHECK: %[[D:.*]] = arith.constant 1.500000e+00 : f32
// CHECK-NEXT: %[[V:.*]] = arith.mulf %in, %[[READ]]
// CHECK-NEXT: %[[W:.*]] = arith.addf %[[V]], %[[D]]
// CHECK-NEXT: arith.maximumf %[[W]], %[[READ]]
// CHECK: func.func @second(
// CHECK-NOT: arith.constant 3.0
// CHECK: func.func @alone(%a: tensor<4xf32>, %o: tensor<4xf32>)
// CHECK: arith.constant 5.0
// CHECK: func.func @zero(%a: tensor<4xf32>, %o: tensor<4xf32>)
// CHECK: func.func @one(%a: tensor<4xf32>, %o: tensor<4xf32>)
// SHARED-COUNT-3: flow.dispatch @first
// SHARED: flow.executable private @first
// SHARED-NOT: @second
// EXACT: flow.dispatch @first::@first(%x, %o) :
// EXACT: flow.dispatch @second::@second(%{{.*}}, %o) :
func.func @main(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %a = flow.dispatch @first::@first(%x, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = flow.dispatch @second::@second(%a, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = flow.dispatch @alone::@alone(%b, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = flow.dispatch @zero::@zero(%c, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = flow.dispatch @one::@one(%d, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f = flow.dispatch @first::@first(%e, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %f : tensor<4xf32>
}
flow.executable private @first {
  flow.executable.export public @first
  builtin.module {
    func.func @first(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %c = arith.constant 2.0 : f32
        %d = arith.constant 1.5 : f32
        %v = arith.mulf %in, %c : f32
        %w = arith.addf %v, %d : f32
        %u = arith.maximumf %w, %c : f32
        linalg.yield %u : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
  }
}
flow.executable private @second {
  flow.executable.export public @second
  builtin.module {
    func.func @second(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %c = arith.constant 3.0 : f32
        %v = arith.mulf %in, %c : f32
        %d = arith.constant 1.5 : f32
        %w = arith.addf %v, %d : f32
        %e = arith.constant 3.0 : f32
        %u = arith.maximumf %w, %e : f32
        linalg.yield %u : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
  }
}
flow.executable private @alone {
  flow.executable.export public @alone
  builtin.module {
    func.func @alone(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %c = arith.constant 5.0 : f32
        %v = arith.mulf %in, %c : f32
        linalg.yield %v : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
  }
}
flow.executable private @zero {
  flow.executable.export public @zero
  builtin.module {
    func.func @zero(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %c = arith.constant 0.0 : f32
        linalg.yield %c : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
  }
}
flow.executable private @one {
  flow.executable.export public @one
  builtin.module {
    func.func @one(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %c = arith.constant 1.0 : f32
        linalg.yield %c : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
  }
}
