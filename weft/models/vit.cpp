// Vision transformer (Dosovitskiy et al. 2021) in the smallest size of DeiT (Touvron et al. 2021), named as in timm.
#include "weft/base/error.h"
#include "weft/models/builder.h"
#include "weft/models/entries.h"
#include "weft/models/options.h"
#include "weft/models/transformer.h"

namespace weft::models {
namespace {

constexpr double kNormEpsilon = 1e-6;

/// [N,C,H,W] -> [N, patches, width]: a convolution whose windows do not overlap.
ValueId embed_patches(ModelBuilder& m, ValueId image, int64_t patch, int64_t width) {
  const ValueId grid =
      m.conv(image, "patch_embed.proj", {.channels = width, .kernel = patch, .stride = patch, .bias = true});
  const Shape shape = m.shape(grid);
  const ValueId rows = ops::reshape(m.graph(), grid, {shape[0], width, shape[2] * shape[3]}, "patch_embed.rows");
  return ops::transpose(m.graph(), rows, {0, 2, 1}, "patch_embed");
}

Model build_vit_tiny(const OpRegistry& registry, const ModelInput& input, const ModelOptions& options, Mode mode) {
  const OptionReader reader("vit_tiny", options);
  const int64_t layers = reader.integer("layers", 12, 1, 1000);
  const int64_t heads = reader.integer("heads", 3, 1, 1024);
  const int64_t width = reader.integer("width", 192, 1, 1 << 16);
  const double dropout = reader.probability("dropout", 0);
  ModelBuilder m(registry, "vit_tiny", input, mode);
  const int64_t patch = reader.integer("patch", m.has_small_images() ? 4 : 16, 1, 1024);
  require_whole_heads("vit_tiny", width, heads);
  Graph& graph = m.graph();
  const ValueId image = m.image(patch);
  if (m.shape(image)[2] % patch != 0 || m.shape(image)[3] % patch != 0) {
    fail(ErrorKind::shape,
         "[vit_tiny] images of {} x {} pixels are no whole number of patches of {} x {}; choose "
         "another option patch, or resize them",
         m.shape(image)[2], m.shape(image)[3], patch, patch);
  }
  ValueId x = embed_patches(m, image, patch, width);
  // Neither decays in DeiT.
  const Initializer start{Initializer::Kind::normal, 0.02};
  const ValueId class_token = m.parameter("cls_token", {1, 1, width}, start, false);
  x = ops::concat(graph, {ops::broadcast_to(graph, class_token, {input.batch, 1, width}, "cls_tokens"), x}, 1,
                  "tokens");
  const int64_t length = m.shape(x)[1];
  x = ops::add(graph, x, m.parameter("pos_embed", {1, length, width}, start, false), "embedded");
  x = m.dropout(ops::reshape(graph, x, {input.batch * length, width}, "embedded.flat"), dropout, "pos_drop");
  const TransformerSizes sizes{.batch = input.batch,
                               .length = length,
                               .width = width,
                               .heads = heads,
                               .dropout = dropout,
                               .epsilon = kNormEpsilon};
  for (int64_t layer = 0; layer < layers; ++layer) x = transformer_block(m, x, fmt::format("blocks.{}", layer), sizes);
  x = ops::reshape(graph, x, {input.batch, length, width}, "blocks.tokens");
  x = ops::slice(graph, x, {0, 0, 0}, {input.batch, 1, width}, "blocks.cls_token");
  x = m.layer_norm(ops::reshape(graph, x, {input.batch, width}, "pooled"), "norm", kNormEpsilon);
  return m.finish(m.linear(x, "head", {.width = input.classes, .start = Start::small_normal}));
}

}  // namespace

ModelEntry vit_tiny_entry() {
  return {"vit_tiny",
          "vision transformer, DeiT-Ti: 12 blocks over patches and a class token",
          {"patch=16: pixels per side of a patch; by default 4 below 64 pixels", "layers=12: number of blocks",
           "heads=3: attention heads per block", "width=192: numbers per patch",
           "dropout=0: of each block's two results and of the embeddings"},
          {1, {3, 224, 224}, 1000},
          build_vit_tiny};
}

}  // namespace weft::models
