// RUN: fuseline opt %s -p dead-code --split-input-file | filecheck %s

// CHECK-LABEL: func.func @chain
// CHECK-NEXT: func.return %x
func.func @chain(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = flow.dispatch.region -> (tensor<8xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%f : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<8xf32>
    flow.return %v : tensor<8xf32>
  }
  return %x : tensor<8xf32>
}

// -----

// Calls of functions stay, unused host operators and their declarations go; a used one stays.
// CHECK-NOT: @host.Unused
// CHECK: func.func private @host.Used
// CHECK: func.func @main
// CHECK-NEXT: func.call @effect
// CHECK-NEXT: func.call @host.Used
// CHECK-NEXT: func.return
func.func private @host.Unused(tensor<8xf32>) -> tensor<8xf32> attributes {fuseline.host_op = "Unused"}
func.func private @host.Used(tensor<8xf32>) -> tensor<8xf32> attributes {fuseline.host_op = "Used"}
func.func private @effect(tensor<8xf32>) -> tensor<8xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = func.call @host.Unused(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %b = func.call @effect(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %c = func.call @host.Used(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}

// -----

// An executable that nothing launches goes.
// CHECK-NOT: flow.executable
flow.executable private @unused {
  flow.executable.export public @entry
  builtin.module {
    func.func @entry(%a: tensor<8xf32>) -> tensor<8xf32> {
      return %a : tensor<8xf32>
    }
  }
}
func.func @idle(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
