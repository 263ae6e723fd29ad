// Computes with integers where a graph says what they mean in reals (ONNX's QDQ form), by
// weft/ops/integer/requantization.h:
//
//   quantize(relu?(conv2d(dequantize(x), dequantize(w)) + bias?))  ->  requantize(integer_conv2d(x, w), bias)
//   quantize(relu?(dequantize(a) + dequantize(b)))                 ->  quantized_add(a, b)
//   conv2d(dequantize(x), dequantize(w), bias?)                    ->  f32(integer_conv2d(x, w)) * scales + bias
//   matmul(dequantize(a), dequantize(b)) + bias?                   ->  dequantized_matmul(a, b, scales, bias)
//   quantize(reshape(dequantize(x))) with one scale                ->  reshape(x); likewise what moves elements, and
//   max_pool2d
//
// The first form holds for matmul too. The sum is exact, and is rounded as often as in ONNX Runtime's integer kernels:
// to f32, and times the joined scales. A product stays in f32 where its scales are no constants. It ends in 8 bits only
// where its bias is constant whole numbers of steps (to 2^-20), and where nobody else reads what is between. Constants
// of 8 bits and fewer that no product takes become reals once.
#pragma once

#include <functional>

#include "weft/device/backend.h"
#include "weft/graph/graph.h"

namespace weft::passes {

Graph form_integer_products(const Graph& graph, const Backend& backend);
/// The same, but constants that no product takes stay integers.
Graph form_products_alone(const Graph& graph, const Backend& backend);
/// Constants become reals where `is_folded` says so of the node that dequantizes them.
Graph fold_dequantized(const Graph& graph, const Backend& backend, const std::function<bool(const Node&)>& is_folded);

}  // namespace weft::passes
