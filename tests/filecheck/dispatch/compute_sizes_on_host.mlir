// RUN: fuseline opt %s -p compute-sizes-on-host --split-input-file --verify-each | filecheck %s
// RUN: fuseline opt %s -p compute-sizes-on-host,compute-sizes-on-host --split-input-file --verify-each | filecheck %s

// A number that is clamped and converted on its way to being an offset.
// CHECK-LABEL: func.func @clamped
// CHECK-SAME: (%x: tensor<18xf32>, %p: tensor<i32>)
// CHECK-NEXT: %n = func.call @host.index.0(%p) {fuseline.dims = {{\[\[}}"index0"]]} : (tensor<i32>) -> index
// CHECK-NEXT: %s = tensor.extract_slice %x[%n] [9] [1]
// CHECK: func private @host.index.0(tensor<i32>) -> index
// CHECK-SAME: fuseline.operand_code = ["element i32 0 0", "constant i32 9", "minsi i32 0 1", "index_cast i64 2", "= int64 [] 3"]
func.func @clamped(%x: tensor<18xf32>, %p: tensor<i32>) -> tensor<9xf32> {
  %nine = arith.constant 9 : i32
  %e = tensor.empty() : tensor<i32>
  %least = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%p : tensor<i32>) outs(%e : tensor<i32>) {
  ^bb0(%in: i32, %out: i32):
    %m = arith.minsi %in, %nine : i32
    linalg.yield %m : i32
  } -> tensor<i32>
  %f = tensor.empty() : tensor<index>
  %i = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%least : tensor<i32>) outs(%f : tensor<index>) {
  ^bb0(%in: i32, %out: index):
    %c = arith.index_cast %in : i32 to index
    linalg.yield %c : index
  } -> tensor<index>
  %n = func.call @host.index.0(%i) {fuseline.dims = [["index0"]]} : (tensor<index>) -> index
  %s = tensor.extract_slice %x[%n] [9] [1] : tensor<18xf32> to tensor<9xf32>
  return %s : tensor<9xf32>
}
func.func private @host.index.0(tensor<index>) -> index attributes {fuseline.host_op = "Index", fuseline.onnx_node = "aG9zdC5pbmRleC4w", fuseline.executor = "index"}

// -----

// A size times a number that is none, rounded down: floats on the way from integers to integers.
// CHECK-LABEL: func.func @scaled
// CHECK: %n = func.call @host.index.0(%p)
// CHECK: func private @host.index.0(tensor<i64>) -> index
// CHECK-SAME: fuseline.operand_code = ["element i64 0 0", "sitofp f32 0", "constantf f32 1069547520", "mulf f32 1 2", "floor f32 3", "fptosi i64 4", "= int64 [] 5"]
func.func @scaled(%x: tensor<18xf32>, %p: tensor<i64>) -> tensor<9xf32> {
  %e = tensor.empty() : tensor<i64>
  %i = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%p : tensor<i64>) outs(%e : tensor<i64>) {
  ^bb0(%in: i64, %out: i64):
    %half = arith.constant 1.5 : f32
    %a = arith.sitofp %in : i64 to f32
    %b = arith.mulf %a, %half : f32
    %c = math.floor %b : f32
    %d = arith.fptosi %c : f32 to i64
    linalg.yield %d : i64
  } -> tensor<i64>
  %n = func.call @host.index.0(%i) {fuseline.dims = [["index0"]]} : (tensor<i64>) -> index
  %s = tensor.extract_slice %x[%n] [9] [1] : tensor<18xf32> to tensor<9xf32>
  return %s : tensor<9xf32>
}
func.func private @host.index.0(tensor<i64>) -> index attributes {fuseline.host_op = "Index", fuseline.onnx_node = "aG9zdC5pbmRleC4w", fuseline.executor = "index"}

// -----

// Elements of a row, a size of the program and constants, side by side; what the operator gets beside them stays.
// CHECK-LABEL: func.func @several
// CHECK: [[M:%.*]] = tensor.dim %x, %one
// CHECK-NEXT: func.call @host.Reshape.0(%x, %p, [[M]]) {{.*}} : (tensor<?x?xf32>, tensor<2xi64>, index) -> tensor<?x?x?xf32>
// CHECK: func private @host.Reshape.0(tensor<?x?xf32>, tensor<2xi64>, index)
// CHECK-SAME: fuseline.operand_code = ["element i64 1 1", "size i64 0", "index_cast i64 1", "muli i64 0 2", "constant i64 -1", "constant i64 2", "= 0", "= int64 [3] 3 4 5"]
func.func @several(%x: tensor<?x?xf32> {fuseline.dims = ["n", "m"]}, %p: tensor<2xi64>) -> tensor<?x?x?xf32> {
  %one = arith.constant 1 : index
  %m = tensor.dim %x, %one : tensor<?x?xf32>
  %wide = arith.index_cast %m : index to i64
  %second = tensor.extract_slice %p[1] [1] [1] : tensor<2xi64> to tensor<1xi64>
  %e = tensor.empty() : tensor<1xi64>
  %product = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%second : tensor<1xi64>) outs(%e : tensor<1xi64>) {
  ^bb0(%in: i64, %out: i64):
    %t = arith.muli %in, %wide : i64
    linalg.yield %t : i64
  } -> tensor<1xi64>
  %rest = arith.constant dense<[-1, 2]> : tensor<2xi64>
  %shape = tensor.concat dim(0) %product, %rest : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
  %r = func.call @host.Reshape.0(%x, %shape) {fuseline.dims = [["a", "b", "c"]]} : (tensor<?x?xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}
func.func private @host.Reshape.0(tensor<?x?xf32>, tensor<3xi64>) -> tensor<?x?x?xf32> attributes {fuseline.host_op = "Reshape"}

// -----

// What a dispatch computes is read where it stored it; only what follows moves.
// CHECK-LABEL: func.func @behind_a_sum
// CHECK: [[SUM:%.*]] = linalg.generic {{.*}} iterator_types = ["reduction"]
// CHECK: func.call @host.Range.0([[SUM]]) {{.*}} : (tensor<i64>)
// CHECK: fuseline.operand_code = ["element i64 0 0", "addi i64 0 0", "= int64 [] 1"]
func.func @behind_a_sum(%p: tensor<100xi64>) -> tensor<?xi64> {
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<i64>
  %f = linalg.fill ins(%zero : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %sum = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%p : tensor<100xi64>) outs(%f : tensor<i64>) {
  ^bb0(%in: i64, %acc: i64):
    %t = arith.addi %in, %acc : i64
    linalg.yield %t : i64
  } -> tensor<i64>
  %twice = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%sum : tensor<i64>) outs(%e : tensor<i64>) {
  ^bb0(%in: i64, %out: i64):
    %t = arith.addi %in, %in : i64
    linalg.yield %t : i64
  } -> tensor<i64>
  %r = func.call @host.Range.0(%twice) {fuseline.dims = [["n"]]} : (tensor<i64>) -> tensor<?xi64>
  return %r : tensor<?xi64>
}
func.func private @host.Range.0(tensor<i64>) -> tensor<?xi64> attributes {fuseline.host_op = "Range"}

// -----

// Who reads the number as data keeps what makes it.
// CHECK-LABEL: func.func @as_data_too
// CHECK: [[DATA:%.*]] = linalg.generic {{.*}} ins(%p : tensor<i64>)
// CHECK: func.call @host.Range.0(%p)
// CHECK: func.return %{{.*}}, [[DATA]]
func.func @as_data_too(%p: tensor<i64>) -> (tensor<?xi64>, tensor<i64>) {
  %e = tensor.empty() : tensor<i64>
  %twice = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%p : tensor<i64>) outs(%e : tensor<i64>) {
  ^bb0(%in: i64, %out: i64):
    %t = arith.addi %in, %in : i64
    linalg.yield %t : i64
  } -> tensor<i64>
  %r = func.call @host.Range.0(%twice) {fuseline.dims = [["n"]]} : (tensor<i64>) -> tensor<?xi64>
  return %r, %twice : tensor<?xi64>, tensor<i64>
}
func.func private @host.Range.0(tensor<i64>) -> tensor<?xi64> attributes {fuseline.host_op = "Range"}

// -----

// Refused: an operator that makes no size known, numbers that exponentials make, and one that two calls share.
// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: operand_code
func.func @left_alone(%p: tensor<i64>, %q: tensor<f32>, %x: tensor<?xi64> {fuseline.dims = ["n"]}) -> (tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>) {
  %e = tensor.empty() : tensor<i64>
  %twice = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%p : tensor<i64>) outs(%e : tensor<i64>) {
  ^bb0(%in: i64, %out: i64):
    %t = arith.addi %in, %in : i64
    linalg.yield %t : i64
  } -> tensor<i64>
  %a = func.call @host.Roll.0(%x, %twice) {fuseline.dims = [["n"]]} : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
  %rounded = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%q : tensor<f32>) outs(%e : tensor<i64>) {
  ^bb0(%in: f32, %out: i64):
    %grown = math.exp %in : f32
    %t = arith.fptosi %grown : f32 to i64
    linalg.yield %t : i64
  } -> tensor<i64>
  %b = func.call @host.Range.0(%rounded) {fuseline.dims = [["k"]]} : (tensor<i64>) -> tensor<?xi64>
  %less = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%p : tensor<i64>) outs(%e : tensor<i64>) {
  ^bb0(%in: i64, %out: i64):
    %t = arith.subi %in, %in : i64
    linalg.yield %t : i64
  } -> tensor<i64>
  %c = func.call @host.Range.1(%less) {fuseline.dims = [["l"]]} : (tensor<i64>) -> tensor<?xi64>
  %d = func.call @host.Range.1(%p) {fuseline.dims = [["m"]]} : (tensor<i64>) -> tensor<?xi64>
  return %a, %b, %c, %d : tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>
}
func.func private @host.Roll.0(tensor<?xi64>, tensor<i64>) -> tensor<?xi64> attributes {fuseline.host_op = "Roll"}
func.func private @host.Range.0(tensor<i64>) -> tensor<?xi64> attributes {fuseline.host_op = "Range"}
func.func private @host.Range.1(tensor<i64>) -> tensor<?xi64> attributes {fuseline.host_op = "Range"}

// -----

// Refused behind a dispatch: what two of them make, and what something else reads as well.
// CHECK-LABEL: func.func @not_alone
// CHECK-COUNT-5: linalg.generic
// CHECK-NOT: operand_code
func.func @not_alone(%p: tensor<100xi64>, %q: tensor<100xi64>) -> (tensor<?xi64>, tensor<?xi64>, tensor<i64>) {
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<i64>
  %f = linalg.fill ins(%zero : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%p : tensor<100xi64>) outs(%f : tensor<i64>) {
  ^bb0(%in: i64, %acc: i64):
    %t = arith.addi %in, %acc : i64
    linalg.yield %t : i64
  } -> tensor<i64>
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%q : tensor<100xi64>) outs(%f : tensor<i64>) {
  ^bb0(%in: i64, %acc: i64):
    %t = arith.maxsi %in, %acc : i64
    linalg.yield %t : i64
  } -> tensor<i64>
  %both = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%a, %b : tensor<i64>, tensor<i64>) outs(%e : tensor<i64>) {
  ^bb0(%x: i64, %y: i64, %out: i64):
    %t = arith.minsi %x, %y : i64
    linalg.yield %t : i64
  } -> tensor<i64>
  %r = func.call @host.Range.0(%both) {fuseline.dims = [["n"]]} : (tensor<i64>) -> tensor<?xi64>
  %c = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%q : tensor<100xi64>) outs(%f : tensor<i64>) {
  ^bb0(%in: i64, %acc: i64):
    %t = arith.addi %in, %acc : i64
    linalg.yield %t : i64
  } -> tensor<i64>
  %twice = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%c : tensor<i64>) outs(%e : tensor<i64>) {
  ^bb0(%x: i64, %out: i64):
    %t = arith.addi %x, %x : i64
    linalg.yield %t : i64
  } -> tensor<i64>
  %s = func.call @host.Range.1(%twice) {fuseline.dims = [["m"]]} : (tensor<i64>) -> tensor<?xi64>
  return %r, %s, %c : tensor<?xi64>, tensor<?xi64>, tensor<i64>
}
func.func private @host.Range.0(tensor<i64>) -> tensor<?xi64> attributes {fuseline.host_op = "Range"}
func.func private @host.Range.1(tensor<i64>) -> tensor<?xi64> attributes {fuseline.host_op = "Range"}

// -----

// An element of what is computed as a whole stays: the whole would lie in memory. One beside the image of a pad, too.
// CHECK-LABEL: func.func @parts
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: operand_code
func.func @parts(%p: tensor<100xi64>, %q: tensor<1xi64>) -> (tensor<?xi64>, tensor<?xi64>) {
  %e = tensor.empty() : tensor<100xi64>
  %all = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%p : tensor<100xi64>) outs(%e : tensor<100xi64>) {
  ^bb0(%in: i64, %out: i64):
    %t = arith.muli %in, %in : i64
    linalg.yield %t : i64
  } -> tensor<100xi64>
  %one = tensor.extract_slice %all[3] [1] [1] : tensor<100xi64> to tensor<1xi64>
  %f = tensor.empty() : tensor<1xi64>
  %twice = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%one : tensor<1xi64>) outs(%f : tensor<1xi64>) {
  ^bb0(%in: i64, %out: i64):
    %t = arith.addi %in, %in : i64
    linalg.yield %t : i64
  } -> tensor<1xi64>
  %r = func.call @host.Tile.0(%twice) {fuseline.dims = [["n"]]} : (tensor<1xi64>) -> tensor<?xi64>
  %zero = arith.constant 0 : i64
  %padded = tensor.pad %q low[1] high[0] {
  ^bb0(%i: index):
    tensor.yield %zero : i64
  } : tensor<1xi64> to tensor<2xi64>
  %s = func.call @host.Tile.1(%padded) {fuseline.dims = [["m"]]} : (tensor<2xi64>) -> tensor<?xi64>
  return %r, %s : tensor<?xi64>, tensor<?xi64>
}
func.func private @host.Tile.0(tensor<1xi64>) -> tensor<?xi64> attributes {fuseline.host_op = "Tile"}
func.func private @host.Tile.1(tensor<2xi64>) -> tensor<?xi64> attributes {fuseline.host_op = "Tile"}
