// RUN: fuseline opt %s -p record-dispatches --verify-each | filecheck %s
// RUN: fuseline opt %s -p record-dispatches,record-dispatches --verify-each | filecheck %s

// The records are not in the IR (tests/unit/passes/dispatch/test_record_dispatches.py): nothing changes here, and unused executables are no matter.
// CHECK: func.func @main
// CHECK-NEXT: %a = flow.dispatch @first::@first(%x, %o)
// CHECK-NEXT: %b = flow.dispatch @first::@first(%a, %o)
// CHECK-NEXT: func.return %b
// CHECK: flow.executable private @first
// CHECK: math.exp
// CHECK: flow.executable private @unused
// CHECK: math.absf
func.func @main(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %a = flow.dispatch @first::@first(%x, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("a")
  %b = flow.dispatch @first::@first(%a, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("b")
  return %b : tensor<4xf32>
}
flow.executable private @first {
  flow.executable.export public @first
  builtin.module {
    func.func @first(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %v = math.exp %in : f32
        linalg.yield %v : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
  }
} loc("first")
flow.executable private @unused {
  flow.executable.export public @unused
  builtin.module {
    func.func @unused(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %v = math.absf %in : f32
        linalg.yield %v : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
  }
} loc("unused")
