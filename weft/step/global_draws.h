// What a step draws at random: each element by its place in the rows of the whole update. So the same is drawn, however
// the rows are divided: among ranks, into batches that are accumulated, shards, grains or micro-batches.
#pragma once

#include <string>

#include "weft/models/model.h"
#include "weft/spec/run_spec.h"

namespace weft::step {

/// Scalar input (i64) of a graph that computes a piece of an update's rows: which piece.
inline constexpr const char* kDrawPlace = "draw_place";
/// The same of one of the micro-batches of a graph.
std::string name_of_micro_place(int64_t micro_batch);

/// Pieces of equal rows into which a batch is cut, over all ranks: each is what a graph computes at a time. 1 where
/// ranks train apart, each of which draws for itself. `ranks`: those that divide the batch.
int64_t pieces_of_batch(const spec::RunSpec& spec, int ranks);
/// Of all batches of an update; where their number changes in the run, the most.
int64_t pieces_of_update(const spec::RunSpec& spec, int ranks);

bool draws(const Graph& graph);

/// Lets the dropouts of a model of one piece draw as one that reads so many pieces at once would. `twice` is the same
/// model of twice as many rows, by which one sees which dimensions hold rows; null: the first one does. What depends on
/// no row is drawn alike for all. To be called before gradients are added, which read the same mask.
void draw_by_global_index(models::Model& model, const Graph* twice, int64_t pieces);

}  // namespace weft::step
