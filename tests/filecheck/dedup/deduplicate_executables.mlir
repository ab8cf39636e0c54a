// RUN: fuseline opt %s -p deduplicate-executables --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p deduplicate-executables,deduplicate-executables --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p "deduplicate-executables{level=none}" --verify-each | filecheck %s --check-prefix NONE
// RUN: not fuseline opt %s -p "deduplicate-executables{level=some}" | filecheck %s --check-prefix LEVEL

// LEVEL: E0304
// LEVEL: level is 'some'

// Of equal code, whatever it is called, the first stays, with the provenance of both; its dispatches follow, others stay where they are.
// CHECK: func.func @main
// CHECK-NEXT: %a = flow.dispatch @first::@first(%x, %o)
// CHECK-NEXT: %b = flow.dispatch @other::@other(%a, %o)
// CHECK-NEXT: %c = flow.dispatch @first::@first(%b, %o)
// CHECK: flow.executable private @first
// CHECK: math.exp
// CHECK: } loc(fused["first", "second"])
// CHECK-NOT: @second
// CHECK: flow.executable private @other
// CHECK: math.absf
// CHECK-NOT: flow.executable
// NONE: flow.dispatch @second::@second
// NONE-COUNT-3: flow.executable private
func.func @main(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %a = flow.dispatch @first::@first(%x, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("a")
  %b = flow.dispatch @other::@other(%a, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("b")
  %c = flow.dispatch @second::@second(%b, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("c")
  return %c : tensor<4xf32>
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
flow.executable private @second {
  flow.executable.export public @second
  builtin.module {
    func.func @second(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %v = math.exp %in : f32
        linalg.yield %v : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
  }
} loc("second")
flow.executable private @other {
  flow.executable.export public @other
  builtin.module {
    func.func @other(%a: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %v = math.absf %in : f32
        linalg.yield %v : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }
  }
} loc("other")
