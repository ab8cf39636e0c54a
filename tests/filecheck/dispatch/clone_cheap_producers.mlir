// RUN: fuseline opt %s -p clone-cheap-producers --split-input-file --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p clone-cheap-producers,clone-cheap-producers --split-input-file --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p clone-cheap-producers --split-input-file --generic | filecheck %s --check-prefix ATTRIBUTES

// A fill goes in with the number and the tensor that it is made of: each once, in the order of the outside, with name, attributes and location.
// What is left outside is dead, whether the region reads it itself (%c, after the fill of it) or not (%e).
// CHECK-LABEL: func.func @fills
// CHECK-NEXT: %r = flow.dispatch.region
// CHECK-NEXT: %c = arith.constant 2.{{.*}} loc("two")
// CHECK-NEXT: %e = tensor.empty() {{.*}} loc("space")
// ATTRIBUTES: flow.dispatch.region
// ATTRIBUTES: %e = "tensor.empty"() {note = "kept"}
// CHECK-NEXT: %f = linalg.fill {{.*}}ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32> loc("start")
// CHECK-NEXT: linalg.generic {{.*}} ins(%x : tensor<4xf32>) outs(%f : tensor<4xf32>)
// CHECK: arith.mulf %{{.*}}, %c : f32
// CHECK: func.return %r
func.func @fills(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant 2.0 : f32 loc("two")
  %e = "tensor.empty"() {note = "kept"} : () -> tensor<4xf32> loc("space")
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32> loc("start")
  %r = flow.dispatch.region -> (tensor<4xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%f : tensor<4xf32>) {
    ^bb0(%in: f32, %acc: f32):
      %s = arith.addf %in, %acc : f32
      %t = arith.mulf %s, %c : f32
      linalg.yield %t : f32
    } -> tensor<4xf32>
    flow.return %v : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// A region each: a copy each. What the caller reads as well stays outside, too.
// CHECK-LABEL: func.func @two_regions
// CHECK-NEXT: %f = arith.constant dense<3.{{.*}}> : tensor<4xf32>
// CHECK-NEXT: %a = flow.dispatch.region
// CHECK-NEXT: %[[F:.*]] = arith.constant dense<3.{{.*}}> : tensor<4xf32>
// CHECK-NEXT: %[[E:.*]] = tensor.empty()
// CHECK-NEXT: linalg.generic {{.*}} ins(%x, %[[F]] : {{.*}} outs(%[[E]] :
// CHECK: %b = flow.dispatch.region
// CHECK-NEXT: %[[F:.*]] = arith.constant dense<3.{{.*}}> : tensor<4xf32>
// CHECK-NEXT: %[[E:.*]] = tensor.empty()
// CHECK-NEXT: linalg.generic {{.*}} ins(%a, %[[F]] : {{.*}} outs(%[[E]] :
// CHECK: func.return %b, %f
func.func @two_regions(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %f = arith.constant dense<3.0> : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %a = flow.dispatch.region -> (tensor<4xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x, %f : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%in: f32, %three: f32, %out: f32):
      %s = arith.addf %in, %three : f32
      linalg.yield %s : f32
    } -> tensor<4xf32>
    flow.return %v : tensor<4xf32>
  }
  %b = flow.dispatch.region -> (tensor<4xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a, %f : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%in: f32, %three: f32, %out: f32):
      %s = arith.mulf %in, %three : f32
      linalg.yield %s : f32
    } -> tensor<4xf32>
    flow.return %v : tensor<4xf32>
  }
  return %b, %f : tensor<4xf32>, tensor<4xf32>
}

// -----

// Bindings stay outside: arguments, tables, weights, and a fill or reshape of one. A fill of a number that is given stays, too.
// CHECK-LABEL: func.func @bindings
// CHECK-NEXT: %table = arith.constant dense<[
// CHECK-NEXT: %weight = arith.constant dense_resource<w>
// CHECK-NEXT: %wide = tensor.expand_shape %weight
// CHECK-NEXT: %flat = tensor.collapse_shape %y
// CHECK-NEXT: %over = linalg.fill {{.*}}ins(%zero : f32) outs(%x
// CHECK-NEXT: %given = linalg.fill {{.*}}ins(%s : f32) outs(%e
// CHECK-NEXT: %r = flow.dispatch.region
// CHECK-NEXT: linalg.generic {{.*}} ins(%x, %table, %flat, %over, %given
// CHECK: tensor.extract %weight
// CHECK: tensor.extract %wide
// CHECK: func.return
func.func @bindings(%x: tensor<4xf32>, %y: tensor<2x2xf32>, %s: f32, %zero: f32, %e: tensor<4xf32>) -> tensor<4xf32> {
  %table = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %weight = arith.constant dense_resource<w> : tensor<4xf32>
  %wide = tensor.expand_shape %weight [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %flat = tensor.collapse_shape %y [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  %over = linalg.fill ins(%zero : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  %given = linalg.fill ins(%s : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = flow.dispatch.region -> (tensor<4xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x, %table, %flat, %over, %given : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %g: f32, %out: f32):
      %i = linalg.index 0 : index
      %o = arith.constant 1 : index
      %p = tensor.extract %weight[%i] : tensor<4xf32>
      %q = tensor.extract %wide[%o, %o] : tensor<2x2xf32>
      %0 = arith.addf %a, %b : f32
      %1 = arith.mulf %c, %d : f32
      %2 = arith.addf %0, %1 : f32
      %3 = arith.mulf %p, %q : f32
      %4 = arith.addf %2, %3 : f32
      %5 = arith.addf %4, %g : f32
      linalg.yield %5 : f32
    } -> tensor<4xf32>
    flow.return %v : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// A fill goes in only where both are cheap: here the number is, the tensor below is not; and the other way round.
// CHECK-LABEL: func.func @half_cheap_fills
// CHECK-NEXT: %c = arith.constant
// CHECK-NEXT: %e = tensor.empty()
// CHECK-NEXT: %f = linalg.fill
// CHECK-NEXT: %g = linalg.fill
// CHECK-NEXT: %r = flow.dispatch.region
// CHECK-NEXT: linalg.generic {{.*}} ins(%f, %g
// CHECK: func.return
func.func @half_cheap_fills(%x: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  %c = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%c : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  %g = linalg.fill ins(%s : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = flow.dispatch.region -> (tensor<4xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%f, %g : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %s1 = arith.addf %a, %b : f32
      linalg.yield %s1 : f32
    } -> tensor<4xf32>
    flow.return %v : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// Reshapes of what is cheap go in with it, both kinds; a number that no generic reads in memory may be a tensor of one element.
// CHECK-LABEL: func.func @reshapes
// CHECK-NEXT: %r = flow.dispatch.region
// CHECK-NEXT: %one = arith.constant dense<1.{{.*}}> : tensor<1xf32>
// CHECK-NEXT: %unit = tensor.expand_shape %one {{.*}} output_shape [1, 1] : tensor<1xf32> into tensor<1x1xf32>
// CHECK-NEXT: %e = tensor.empty() : tensor<4x1xf32>
// CHECK-NEXT: %flat = tensor.collapse_shape %e {{.*}} : tensor<4x1xf32> into tensor<4xf32>
// CHECK-NEXT: linalg.generic {{.*}} ins(%unit, %x : {{.*}} outs(%flat
func.func @reshapes(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %e = tensor.empty() : tensor<4x1xf32>
  %unit = tensor.expand_shape %one [[0, 1]] output_shape [1, 1] : tensor<1xf32> into tensor<1x1xf32>
  %flat = tensor.collapse_shape %e [[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
  %r = flow.dispatch.region -> (tensor<4xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(i) -> (0, 0)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%unit, %x : tensor<1x1xf32>, tensor<4xf32>) outs(%flat : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<4xf32>
    flow.return %v : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// Splats that a contraction, convolution or depthwise convolution reads stay outside, for every reader: they are wanted in memory.
// CHECK-LABEL: func.func @packed
// CHECK-NEXT: %w = arith.constant dense<2.{{.*}}> : tensor<3x3xf32>
// CHECK-NEXT: %k = arith.constant dense<3.{{.*}}> : tensor<3x1x1xf32>
// CHECK-NEXT: %d = arith.constant dense<4.{{.*}}> : tensor<2x3xf32>
// CHECK-NEXT: flow.dispatch.region
// CHECK-NEXT: linalg.generic {{.*}} ins(%x, %w
// CHECK: flow.dispatch.region
// CHECK-NEXT: linalg.generic {{.*}} ins(%y, %k
// CHECK: flow.dispatch.region
// CHECK-NEXT: linalg.generic {{.*}} ins(%z, %d
// CHECK: flow.dispatch.region
// CHECK-NEXT: linalg.generic {{.*}} ins(%x, %w
func.func @packed(%x: tensor<3x3xf32>, %y: tensor<1x4xf32>, %z: tensor<5x3xf32>, %o: tensor<3x4xf32>, %p: tensor<4x3xf32>) -> (tensor<3x3xf32>, tensor<3x4xf32>, tensor<4x3xf32>, tensor<3x3xf32>) {
  %w = arith.constant dense<2.0> : tensor<3x3xf32>
  %k = arith.constant dense<3.0> : tensor<3x1x1xf32>
  %d = arith.constant dense<4.0> : tensor<2x3xf32>
  %a = flow.dispatch.region -> (tensor<3x3xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<3x3xf32>, tensor<3x3xf32>) outs(%x : tensor<3x3xf32>) {
    ^bb0(%l: f32, %r: f32, %acc: f32):
      %m = arith.mulf %l, %r : f32
      %s = arith.addf %acc, %m : f32
      linalg.yield %s : f32
    } -> tensor<3x3xf32>
    flow.return %v : tensor<3x3xf32>
  }
  %b = flow.dispatch.region -> (tensor<3x4xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(f, i, c, t) -> (c, i + t)>, affine_map<(f, i, c, t) -> (f, c, t)>, affine_map<(f, i, c, t) -> (f, i)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%y, %k : tensor<1x4xf32>, tensor<3x1x1xf32>) outs(%o : tensor<3x4xf32>) {
    ^bb0(%l: f32, %r: f32, %acc: f32):
      %m = arith.mulf %l, %r : f32
      %s = arith.addf %acc, %m : f32
      linalg.yield %s : f32
    } -> tensor<3x4xf32>
    flow.return %v : tensor<3x4xf32>
  }
  %c = flow.dispatch.region -> (tensor<4x3xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(i, c, t) -> (i + t, c)>, affine_map<(i, c, t) -> (t, c)>, affine_map<(i, c, t) -> (i, c)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%z, %d : tensor<5x3xf32>, tensor<2x3xf32>) outs(%p : tensor<4x3xf32>) {
    ^bb0(%l: f32, %r: f32, %acc: f32):
      %m = arith.mulf %l, %r : f32
      %s = arith.addf %acc, %m : f32
      linalg.yield %s : f32
    } -> tensor<4x3xf32>
    flow.return %v : tensor<4x3xf32>
  }
  %e = flow.dispatch.region -> (tensor<3x3xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %w : tensor<3x3xf32>, tensor<3x3xf32>) outs(%x : tensor<3x3xf32>) {
    ^bb0(%l: f32, %r: f32, %acc: f32):
      %m = arith.mulf %l, %r : f32
      linalg.yield %m : f32
    } -> tensor<3x3xf32>
    flow.return %v : tensor<3x3xf32>
  }
  return %a, %b, %c, %e : tensor<3x3xf32>, tensor<3x4xf32>, tensor<4x3xf32>, tensor<3x3xf32>
}

// -----

// Arithmetic on numbers and sizes goes in, as the count that a mean divides by; the sizes stay. What reads data, or a number that is given, stays.
// CHECK-LABEL: func.func @counts
// CHECK-NEXT: %c0 = arith.constant 0 : index
// CHECK-NEXT: %n = tensor.dim %x, %c0
// CHECK-NEXT: %c2 = arith.constant 2 : index
// CHECK-NEXT: %twice = arith.muli %n, %c2 : index
// CHECK-NEXT: %read = tensor.extract %x[%c0]
// CHECK-NEXT: %more = arith.addf %s, %s : f32
// CHECK-NEXT: %r = flow.dispatch.region -> (tensor<?xf32>{%n}) {
// CHECK-NEXT: %e = tensor.empty(%n)
// CHECK-NEXT: %wide = arith.index_cast %twice : index to i64
// CHECK-NEXT: %count = arith.sitofp %wide : i64 to f32
// CHECK-NEXT: %half = arith.constant 5.{{.*}} : f32
// CHECK-NEXT: %share = arith.divf %half, %count fastmath<nnan> : f32
// CHECK-NEXT: %c1 = arith.constant 1 : index
// CHECK-NEXT: linalg.generic
// CHECK: arith.mulf %{{.*}}, %count
// CHECK: arith.mulf %{{.*}}, %share
// CHECK: arith.mulf %{{.*}}, %read
// CHECK: arith.mulf %{{.*}}, %more
// CHECK: arith.index_cast %twice
// CHECK: func.return
func.func @counts(%x: tensor<?xf32>, %s: f32) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %c2 = arith.constant 2 : index
  %twice = arith.muli %n, %c2 : index
  %wide = arith.index_cast %twice : index to i64
  %count = arith.sitofp %wide : i64 to f32
  %half = arith.constant 0.5 : f32
  %share = arith.divf %half, %count fastmath<nnan> : f32
  %read = tensor.extract %x[%c0] : tensor<?xf32>
  %more = arith.addf %s, %s : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = flow.dispatch.region -> (tensor<?xf32>{%n}) {
    %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.mulf %in, %count : f32
      %1 = arith.mulf %0, %share : f32
      %2 = arith.mulf %1, %read : f32
      %3 = arith.mulf %2, %more : f32
      %i = linalg.index 0 : index
      %j = arith.addi %i, %c1 : index
      %k = arith.addi %j, %twice : index
      %l = arith.index_cast %k : index to i64
      %m = arith.index_cast %twice : index to i64
      %o = arith.addi %l, %m : i64
      %p = arith.sitofp %o : i64 to f32
      %q = arith.addf %3, %p : f32
      linalg.yield %q : f32
    } -> tensor<?xf32>
    flow.return %v : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

// A size that is a number goes in with the tensor of that size, and stays outside for the region's own sizes. What nobody reads is not this pass'.
// CHECK-LABEL: func.func @sizes
// CHECK-NEXT: %c6 = arith.constant 6 : index
// CHECK-NEXT: %unused = arith.constant 7 : index
// CHECK-NEXT: %r = flow.dispatch.region -> (tensor<?xf32>{%c6}) {
// CHECK-NEXT: %[[N:.*]] = arith.constant 6 : index
// CHECK-NEXT: tensor.empty(%[[N]])
func.func @sizes(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c6 = arith.constant 6 : index
  %unused = arith.constant 7 : index
  %e = tensor.empty(%c6) : tensor<?xf32>
  %r = flow.dispatch.region -> (tensor<?xf32>{%c6}) {
    %v = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %s = arith.addf %in, %in : f32
      linalg.yield %s : f32
    } -> tensor<?xf32>
    flow.return %v : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

// Outside of regions nothing moves.
// CHECK-LABEL: func.func @no_region
// CHECK-NEXT: %c = arith.constant
// CHECK-NEXT: %e = tensor.empty
// CHECK-NEXT: %f = linalg.fill
// CHECK-NEXT: func.return %f
func.func @no_region() -> tensor<4xf32> {
  %c = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %f : tensor<4xf32>
}

// -----

// A splat that a contraction reads under another shape is wanted in memory just the same.
// CHECK-LABEL: func.func @packed_behind_a_reshape
// CHECK-NEXT: %w = arith.constant dense<2.{{.*}}> : tensor<9xf32>
// CHECK-NEXT: %m = tensor.expand_shape %w
// CHECK-NEXT: flow.dispatch.region
// CHECK-NEXT: linalg.generic {{.*}} ins(%x, %m
// CHECK: flow.dispatch.region
// CHECK-NEXT: %s = arith.constant dense<5.{{.*}}> : tensor<9xf32>
// CHECK-NEXT: %t = tensor.expand_shape %s
// CHECK-NEXT: linalg.generic {{.*}} ins(%x, %t
func.func @packed_behind_a_reshape(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  %w = arith.constant dense<2.0> : tensor<9xf32>
  %m = tensor.expand_shape %w [[0, 1]] output_shape [3, 3] : tensor<9xf32> into tensor<3x3xf32>
  %s = arith.constant dense<5.0> : tensor<9xf32>
  %t = tensor.expand_shape %s [[0, 1]] output_shape [3, 3] : tensor<9xf32> into tensor<3x3xf32>
  %a = flow.dispatch.region -> (tensor<3x3xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %m : tensor<3x3xf32>, tensor<3x3xf32>) outs(%x : tensor<3x3xf32>) {
    ^bb0(%l: f32, %r: f32, %acc: f32):
      %p = arith.mulf %l, %r : f32
      %q = arith.addf %acc, %p : f32
      linalg.yield %q : f32
    } -> tensor<3x3xf32>
    flow.return %v : tensor<3x3xf32>
  }
  %b = flow.dispatch.region -> (tensor<3x3xf32>) {
    %v = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %t : tensor<3x3xf32>, tensor<3x3xf32>) outs(%x : tensor<3x3xf32>) {
    ^bb0(%l: f32, %r: f32, %acc: f32):
      %p = arith.mulf %l, %r : f32
      linalg.yield %p : f32
    } -> tensor<3x3xf32>
    flow.return %v : tensor<3x3xf32>
  }
  return %a, %b : tensor<3x3xf32>, tensor<3x3xf32>
}
