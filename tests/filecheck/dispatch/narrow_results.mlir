// RUN: fuseline opt %s -p "generalize-named-ops,form-dispatch-regions{without=root-chain},narrow-results" --split-input-file --verify-each | filecheck %s
// RUN: fuseline opt %s -p "generalize-named-ops,form-dispatch-regions{without=root-chain},narrow-results,narrow-results" --split-input-file --verify-each | filecheck %s --check-prefix TWICE
// RUN: fuseline opt %s -p "generalize-named-ops,form-dispatch-regions{without=root-chain},narrow-results{enabled=false}" --split-input-file --verify-each | filecheck %s --check-prefix OFF
// Without root-chain, which makes one dispatch of what is quantised and the products of its rows.

// OFF-NOT: stored in
// TWICE: stored in 8 bits
// TWICE-NOT: stored in 8 bits

// What the dispatch itself doubles in 16 bits is stored in 8, and widened where it is multiplied.
// CHECK: stored in 8 bits
// CHECK-LABEL: func.func @narrowed
// CHECK: %[[A:.*]] = flow.dispatch.region -> (tensor<400x400xi8>, tensor<400x400xi16>) attributes {{.*}}classes
// CHECK: flow.return %q, %s{{.*}} : tensor<400x400xi8>, tensor<400x400xi16>
// CHECK: flow.dispatch.region -> (tensor<400x8xi32>) attributes {fuseline.members = ["elementwise.{{.*}}-widened", "contraction.{{.*}}"], fuseline.loops = {{.*}}members = ["inlined", array<i64: 0, 1, -1>]
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%w : tensor<400x400xi8>)
// CHECK: arith.extsi %{{.*}} : i8 to i16
// CHECK: linalg.generic {{.*}} ins(%[[W]], %b : tensor<400x400xi16>, tensor<400x8xi16>)
#id = affine_map<(i, j) -> (i, j)>
func.func @narrowed(%x: tensor<400x400xf32>, %b: tensor<400x8xi16>) -> (tensor<400x400xi16>, tensor<400x8xi32>) {
  %e8 = tensor.empty() : tensor<400x400xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<400x400xf32>) outs(%e8 : tensor<400x400xi8>) {
  ^bb0(%in: f32, %out: i8):
    %n = arith.fptosi %in : f32 to i8
    linalg.yield %n : i8
  } -> tensor<400x400xi8>
  %e = tensor.empty() : tensor<400x400xi16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<400x400xi8>) outs(%e : tensor<400x400xi16>) {
  ^bb0(%in: i8, %out: i16):
    %n = arith.extsi %in : i8 to i16
    linalg.yield %n : i16
  } -> tensor<400x400xi16>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<400x400xi16>) outs(%e : tensor<400x400xi16>) {
  ^bb0(%in: i16, %out: i16):
    %n = arith.addi %in, %in : i16
    linalg.yield %n : i16
  } -> tensor<400x400xi16>
  %c = arith.constant 0 : i32
  %ez = tensor.empty() : tensor<400x8xi32>
  %z = linalg.fill ins(%c : i32) outs(%ez : tensor<400x8xi32>) -> tensor<400x8xi32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %b : tensor<400x400xi16>, tensor<400x8xi16>) outs(%z : tensor<400x8xi32>) {
  ^bb0(%l: i16, %r: i16, %acc: i32):
    %wl = arith.extsi %l : i16 to i32
    %wr = arith.extsi %r : i16 to i32
    %m = arith.muli %wl, %wr : i32
    %t = arith.addi %acc, %m : i32
    linalg.yield %t : i32
  } -> tensor<400x8xi32>
  return %s, %p : tensor<400x400xi16>, tensor<400x8xi32>
}

// -----

// Only products read it, packed as it is widened: the dispatch widens it for nothing.
// CHECK-NOT: stored in
// CHECK-LABEL: func.func @products_alone
// CHECK: flow.return %w
#id = affine_map<(i, j) -> (i, j)>
func.func @products_alone(%x: tensor<400x400xf32>, %b: tensor<400x8xi16>, %c8: tensor<400x8xi16>) -> (tensor<400x8xi32>, tensor<400x8xi32>) {
  %e8 = tensor.empty() : tensor<400x400xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<400x400xf32>) outs(%e8 : tensor<400x400xi8>) {
  ^bb0(%in: f32, %out: i8):
    %n = arith.fptosi %in : f32 to i8
    linalg.yield %n : i8
  } -> tensor<400x400xi8>
  %e = tensor.empty() : tensor<400x400xi16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<400x400xi8>) outs(%e : tensor<400x400xi16>) {
  ^bb0(%in: i8, %out: i16):
    %n = arith.extsi %in : i8 to i16
    linalg.yield %n : i16
  } -> tensor<400x400xi16>
  %c = arith.constant 0 : i32
  %ez = tensor.empty() : tensor<400x8xi32>
  %z = linalg.fill ins(%c : i32) outs(%ez : tensor<400x8xi32>) -> tensor<400x8xi32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %b : tensor<400x400xi16>, tensor<400x8xi16>) outs(%z : tensor<400x8xi32>) {
  ^bb0(%l: i16, %r: i16, %acc: i32):
    %wl = arith.extsi %l : i16 to i32
    %wr = arith.extsi %r : i16 to i32
    %m = arith.muli %wl, %wr : i32
    %t = arith.addi %acc, %m : i32
    linalg.yield %t : i32
  } -> tensor<400x8xi32>
  %p2 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %c8 : tensor<400x400xi16>, tensor<400x8xi16>) outs(%z : tensor<400x8xi32>) {
  ^bb0(%l: i16, %r: i16, %acc: i32):
    %wl = arith.extsi %l : i16 to i32
    %wr = arith.extsi %r : i16 to i32
    %m = arith.muli %wl, %wr : i32
    %t = arith.addi %acc, %m : i32
    linalg.yield %t : i32
  } -> tensor<400x8xi32>
  return %p, %p2 : tensor<400x8xi32>, tensor<400x8xi32>
}

// -----

// The caller gets it.
// CHECK: stored in 16 bits (read-outside)
// CHECK-LABEL: func.func @returned
// CHECK: flow.return %w
#id = affine_map<(i, j) -> (i, j)>
func.func @returned(%x: tensor<400x400xf32>, %b: tensor<400x8xi16>) -> (tensor<400x400xi16>, tensor<400x8xi32>, tensor<400x400xi16>) {
  %e8 = tensor.empty() : tensor<400x400xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<400x400xf32>) outs(%e8 : tensor<400x400xi8>) {
  ^bb0(%in: f32, %out: i8):
    %n = arith.fptosi %in : f32 to i8
    linalg.yield %n : i8
  } -> tensor<400x400xi8>
  %e = tensor.empty() : tensor<400x400xi16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<400x400xi8>) outs(%e : tensor<400x400xi16>) {
  ^bb0(%in: i8, %out: i16):
    %n = arith.extsi %in : i8 to i16
    linalg.yield %n : i16
  } -> tensor<400x400xi16>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<400x400xi16>) outs(%e : tensor<400x400xi16>) {
  ^bb0(%in: i16, %out: i16):
    %n = arith.addi %in, %in : i16
    linalg.yield %n : i16
  } -> tensor<400x400xi16>
  %c = arith.constant 0 : i32
  %ez = tensor.empty() : tensor<400x8xi32>
  %z = linalg.fill ins(%c : i32) outs(%ez : tensor<400x8xi32>) -> tensor<400x8xi32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %b : tensor<400x400xi16>, tensor<400x8xi16>) outs(%z : tensor<400x8xi32>) {
  ^bb0(%l: i16, %r: i16, %acc: i32):
    %wl = arith.extsi %l : i16 to i32
    %wr = arith.extsi %r : i16 to i32
    %m = arith.muli %wl, %wr : i32
    %t = arith.addi %acc, %m : i32
    linalg.yield %t : i32
  } -> tensor<400x8xi32>
  return %s, %p, %w : tensor<400x400xi16>, tensor<400x8xi32>, tensor<400x400xi16>
}

// -----

// Packing takes more than it would save.
// CHECK: stored in 16 bits (too-small): it would save 1200 bytes, packing may take 114688
// CHECK-LABEL: func.func @small
// CHECK: flow.return %w
#id = affine_map<(i, j) -> (i, j)>
func.func @small(%x: tensor<30x40xf32>, %b: tensor<40x8xi16>) -> (tensor<30x40xi16>, tensor<30x8xi32>) {
  %e8 = tensor.empty() : tensor<30x40xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<30x40xf32>) outs(%e8 : tensor<30x40xi8>) {
  ^bb0(%in: f32, %out: i8):
    %n = arith.fptosi %in : f32 to i8
    linalg.yield %n : i8
  } -> tensor<30x40xi8>
  %e = tensor.empty() : tensor<30x40xi16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<30x40xi8>) outs(%e : tensor<30x40xi16>) {
  ^bb0(%in: i8, %out: i16):
    %n = arith.extsi %in : i8 to i16
    linalg.yield %n : i16
  } -> tensor<30x40xi16>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<30x40xi16>) outs(%e : tensor<30x40xi16>) {
  ^bb0(%in: i16, %out: i16):
    %n = arith.addi %in, %in : i16
    linalg.yield %n : i16
  } -> tensor<30x40xi16>
  %c = arith.constant 0 : i32
  %ez = tensor.empty() : tensor<30x8xi32>
  %z = linalg.fill ins(%c : i32) outs(%ez : tensor<30x8xi32>) -> tensor<30x8xi32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %b : tensor<30x40xi16>, tensor<40x8xi16>) outs(%z : tensor<30x8xi32>) {
  ^bb0(%l: i16, %r: i16, %acc: i32):
    %wl = arith.extsi %l : i16 to i32
    %wr = arith.extsi %r : i16 to i32
    %m = arith.muli %wl, %wr : i32
    %t = arith.addi %acc, %m : i32
    linalg.yield %t : i32
  } -> tensor<30x8xi32>
  return %s, %p : tensor<30x40xi16>, tensor<30x8xi32>
}

// -----

// A window would widen each of them three times.
// CHECK: stored in 16 bits (read-again)
// CHECK-LABEL: func.func @window
// CHECK: flow.return %w
#id = affine_map<(i, j) -> (i, j)>
func.func @window(%x: tensor<400x400xf32>, %b: tensor<3x400x8xi16>) -> (tensor<400x400xi16>, tensor<398x8xi32>) {
  %e8 = tensor.empty() : tensor<400x400xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<400x400xf32>) outs(%e8 : tensor<400x400xi8>) {
  ^bb0(%in: f32, %out: i8):
    %n = arith.fptosi %in : f32 to i8
    linalg.yield %n : i8
  } -> tensor<400x400xi8>
  %e = tensor.empty() : tensor<400x400xi16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<400x400xi8>) outs(%e : tensor<400x400xi16>) {
  ^bb0(%in: i8, %out: i16):
    %n = arith.extsi %in : i8 to i16
    linalg.yield %n : i16
  } -> tensor<400x400xi16>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<400x400xi16>) outs(%e : tensor<400x400xi16>) {
  ^bb0(%in: i16, %out: i16):
    %n = arith.addi %in, %in : i16
    linalg.yield %n : i16
  } -> tensor<400x400xi16>
  %c = arith.constant 0 : i32
  %ez = tensor.empty() : tensor<398x8xi32>
  %z = linalg.fill ins(%c : i32) outs(%ez : tensor<398x8xi32>) -> tensor<398x8xi32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, t, k) -> (i + t, k)>, affine_map<(i, j, t, k) -> (t, k, j)>, affine_map<(i, j, t, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%w, %b : tensor<400x400xi16>, tensor<3x400x8xi16>) outs(%z : tensor<398x8xi32>) {
  ^bb0(%l: i16, %r: i16, %acc: i32):
    %wl = arith.extsi %l : i16 to i32
    %wr = arith.extsi %r : i16 to i32
    %m = arith.muli %wl, %wr : i32
    %t = arith.addi %acc, %m : i32
    linalg.yield %t : i32
  } -> tensor<398x8xi32>
  return %s, %p : tensor<400x400xi16>, tensor<398x8xi32>
}

// -----

// CHECK: stored in 16 bits (symbolic)
// CHECK-LABEL: func.func @symbolic
// CHECK: flow.return %w
#id = affine_map<(i, j) -> (i, j)>
func.func @symbolic(%x: tensor<?x400xf32>, %b: tensor<400x8xi16>) -> (tensor<?x400xi16>, tensor<?x8xi32>) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x400xf32>
  %e8 = tensor.empty(%d) : tensor<?x400xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x400xf32>) outs(%e8 : tensor<?x400xi8>) {
  ^bb0(%in: f32, %out: i8):
    %n = arith.fptosi %in : f32 to i8
    linalg.yield %n : i8
  } -> tensor<?x400xi8>
  %e = tensor.empty(%d) : tensor<?x400xi16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<?x400xi8>) outs(%e : tensor<?x400xi16>) {
  ^bb0(%in: i8, %out: i16):
    %n = arith.extsi %in : i8 to i16
    linalg.yield %n : i16
  } -> tensor<?x400xi16>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<?x400xi16>) outs(%e : tensor<?x400xi16>) {
  ^bb0(%in: i16, %out: i16):
    %n = arith.addi %in, %in : i16
    linalg.yield %n : i16
  } -> tensor<?x400xi16>
  %c = arith.constant 0 : i32
  %ez = tensor.empty(%d) : tensor<?x8xi32>
  %z = linalg.fill ins(%c : i32) outs(%ez : tensor<?x8xi32>) -> tensor<?x8xi32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %b : tensor<?x400xi16>, tensor<400x8xi16>) outs(%z : tensor<?x8xi32>) {
  ^bb0(%l: i16, %r: i16, %acc: i32):
    %wl = arith.extsi %l : i16 to i32
    %wr = arith.extsi %r : i16 to i32
    %m = arith.muli %wl, %wr : i32
    %t = arith.addi %acc, %m : i32
    linalg.yield %t : i32
  } -> tensor<?x8xi32>
  return %s, %p : tensor<?x400xi16>, tensor<?x8xi32>
}

// -----

// Three products are arms of one dispatch: no member can stand before all of them.
// CHECK: stored in 16 bits (loops)
// CHECK-LABEL: func.func @three_products
// CHECK: flow.return %w
#id = affine_map<(i, j) -> (i, j)>
func.func @three_products(%x: tensor<400x400xf32>, %b: tensor<400x8xi16>, %b2: tensor<400x8xi16>, %b3: tensor<400x8xi16>) -> (tensor<400x400xi16>, tensor<400x8xi32>, tensor<400x8xi32>, tensor<400x8xi32>) {
  %e8 = tensor.empty() : tensor<400x400xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<400x400xf32>) outs(%e8 : tensor<400x400xi8>) {
  ^bb0(%in: f32, %out: i8):
    %n = arith.fptosi %in : f32 to i8
    linalg.yield %n : i8
  } -> tensor<400x400xi8>
  %e = tensor.empty() : tensor<400x400xi16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<400x400xi8>) outs(%e : tensor<400x400xi16>) {
  ^bb0(%in: i8, %out: i16):
    %n = arith.extsi %in : i8 to i16
    linalg.yield %n : i16
  } -> tensor<400x400xi16>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<400x400xi16>) outs(%e : tensor<400x400xi16>) {
  ^bb0(%in: i16, %out: i16):
    %n = arith.addi %in, %in : i16
    linalg.yield %n : i16
  } -> tensor<400x400xi16>
  %c = arith.constant 0 : i32
  %ez = tensor.empty() : tensor<400x8xi32>
  %z = linalg.fill ins(%c : i32) outs(%ez : tensor<400x8xi32>) -> tensor<400x8xi32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %b : tensor<400x400xi16>, tensor<400x8xi16>) outs(%z : tensor<400x8xi32>) {
  ^bb0(%l: i16, %r: i16, %acc: i32):
    %wl = arith.extsi %l : i16 to i32
    %wr = arith.extsi %r : i16 to i32
    %m = arith.muli %wl, %wr : i32
    %t = arith.addi %acc, %m : i32
    linalg.yield %t : i32
  } -> tensor<400x8xi32>
  %p2 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %b2 : tensor<400x400xi16>, tensor<400x8xi16>) outs(%z : tensor<400x8xi32>) {
  ^bb0(%l: i16, %r: i16, %acc: i32):
    %wl = arith.extsi %l : i16 to i32
    %wr = arith.extsi %r : i16 to i32
    %m = arith.muli %wl, %wr : i32
    %t = arith.addi %acc, %m : i32
    linalg.yield %t : i32
  } -> tensor<400x8xi32>
  %p3 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %b3 : tensor<400x400xi16>, tensor<400x8xi16>) outs(%z : tensor<400x8xi32>) {
  ^bb0(%l: i16, %r: i16, %acc: i32):
    %wl = arith.extsi %l : i16 to i32
    %wr = arith.extsi %r : i16 to i32
    %m = arith.muli %wl, %wr : i32
    %t = arith.addi %acc, %m : i32
    linalg.yield %t : i32
  } -> tensor<400x8xi32>
  return %s, %p, %p2, %p3 : tensor<400x400xi16>, tensor<400x8xi32>, tensor<400x8xi32>, tensor<400x8xi32>
}
