// A pad of the innermost dimension to a length that vectors do not divide, alone in a dispatch.
// 
// fails: failed to run translation of source executable

func.func @main(%x: tensor<224x224xf32>) -> tensor<224x226xf32> {
  %r = flow.dispatch.region -> (tensor<224x226xf32>) {
      %zero = arith.constant 0.0 : f32
      %p = tensor.pad %x low[0, 1] high[0, 1] {
      ^bb0(%a: index, %b: index):
        tensor.yield %zero : f32
      } : tensor<224x224xf32> to tensor<224x226xf32>
      flow.return %p : tensor<224x226xf32>
  }
  return %r : tensor<224x226xf32>
}
