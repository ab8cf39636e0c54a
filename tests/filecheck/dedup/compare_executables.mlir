// RUN: fuseline opt %s -p compare-executables --verify-each | filecheck %s
// RUN: fuseline opt %s -p compare-executables,compare-executables --verify-each | filecheck %s
// RUN: fuseline opt %s -p "compare-executables{level=shapes}" --verify-each | filecheck %s
// RUN: not fuseline opt %s -p "compare-executables{level=all}" | filecheck %s --check-prefix LEVEL

// LEVEL: E0304
// LEVEL: level is 'all'

// What is compared stays as it is: the records have what was found.
// CHECK: func.func @main
// CHECK-NEXT: %a = flow.dispatch @first::@first(%x, %o)
// CHECK-NEXT: %b = flow.dispatch @second::@second(%a, %o)
// CHECK-NEXT: return
// CHECK: func.func @first(%a: tensor<4xf32>, %o: tensor<4xf32>)
// CHECK: arith.constant 2.0
// CHECK: func.func @second(%a: tensor<4xf32>, %o: tensor<4xf32>)
// CHECK: arith.constant 3.0
// CHECK: arith.constant 3.0
func.func @main(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %a = flow.dispatch @first::@first(%x, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = flow.dispatch @second::@second(%a, %o) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
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
