// RUN: fuseline opt %s -p order-dispatches --verify-each | filecheck %s
// RUN: fuseline opt %s -p order-dispatches,order-dispatches --verify-each | filecheck %s

// The chain a, b needs two waves and %late, which only the last reads, is made in the second: it is not held through the first.
// The reshape goes before its reader. Every op still follows what it reads.
// CHECK: func.func @main
// CHECK: %a = flow.dispatch
// CHECK-NEXT: %late = flow.dispatch @first::@first(%x
// CHECK-NEXT: %b = flow.dispatch @first::@first(%a
// CHECK-NEXT: %e = tensor.expand_shape %b
// CHECK-NEXT: %k = tensor.collapse_shape %e
// CHECK-NEXT: %r = flow.dispatch @first::@first(%k, %late)
// CHECK-NEXT: func.return %r
func.func @main(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %late = flow.dispatch @first::@first(%x, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("late")
  %a = flow.dispatch @first::@first(%x, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("a")
  %b = flow.dispatch @first::@first(%a, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("b")
  %e = tensor.expand_shape %b [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %k = tensor.collapse_shape %e [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  %r = flow.dispatch @first::@first(%k, %late) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
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
