// Samples of images and volumes between their elements: what GridSample, DeformConv and RoiAlign are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "weft/onnx/operators/context.h"

namespace weft::onnx {

/// The elements along one axis that samples lie between, and how much each counts. A list per sample, all of the same
/// length: value i is the i-th neighbour of every sample.
struct AxisNeighbours {
  std::vector<ValueId> places;   // f32 [rows, samples], the whole numbers of elements that are there
  std::vector<ValueId> weights;  // f32 [rows, samples]; 0 where the neighbour lies outside
};

enum class Between { nearest, linear, cubic };
enum class Beyond { zeros, border, reflection };

/// Neighbours of `positions`, f32 [rows, samples], along an axis of `size` elements: position 0 is the centre of the
/// first element. `mirror_at_centres`: a reflection turns back at the centres of the outer elements, else at their
/// outer edges. NaN counts as far outside.
AxisNeighbours find_neighbours(Graph& graph, ValueId positions, int64_t size, Between between, Beyond beyond,
                               bool mirror_at_centres);

/// The two neighbours of positions from 0 to size - 1, by how near they are. Others are moved there first.
AxisNeighbours linear_neighbours(Graph& graph, ValueId positions, int64_t size);

/// The weighted sums of neighbours in x [rows, elements, channels], whose elements are row-major over `sizes`, one size
/// per axis: [rows, samples, channels].
ValueId sample(Graph& graph, ValueId x, const std::vector<int64_t>& sizes, const std::vector<AxisNeighbours>& axes);

/// Calls function(row-major places i64 [rows, samples], weights f32 [rows, samples]) for each combination of
/// neighbours.
void for_each_neighbour(Graph& graph, const std::vector<int64_t>& sizes, const std::vector<AxisNeighbours>& axes,
                        const std::function<void(ValueId places, ValueId weights)>& function);

}  // namespace weft::onnx
