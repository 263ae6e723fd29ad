#include "benchmarks/kernel_rows.h"

namespace weft::benchmarks {

namespace {

using Dims = std::vector<int64_t>;

TensorType f32(Shape shape) { return {DType::f32, std::move(shape), {}}; }

class Rows {
 public:
  explicit Rows(DType images) : images_(images) {}

  void add_batch_norm(const std::string& layout, int64_t channels, int64_t size) {
    const TensorType x = image(16, channels, size, layout), channel = f32({channels});
    Attributes relu{{"epsilon", 1e-5}, {"activation", std::string("relu")}};
    list.push_back({"batch_norm", {x, channel, channel}, {x, channel, channel}, relu});
    list.push_back({"batch_norm", {x, channel, channel, x}, {x, channel, channel}, relu});
    relu.set("residual_gradient", false);
    list.push_back({"batch_norm_backward", {x, x, channel, channel, channel, channel}, {x, channel, channel}, relu});
    relu.set("residual_gradient", true);
    list.push_back(
        {"batch_norm_backward", {x, x, channel, channel, channel, channel, x}, {x, channel, channel, x}, relu});
  }

  void add_elementwise() {
    const TensorType x = image(16, 256, 32, "aBcd16b");
    list.push_back({"add", {x, x}, {x}});
    list.push_back({"relu", {x}, {x}});
    list.push_back({"clip", {x}, {x}, {{"low", 0.0}, {"high", 6.0}}});
    list.push_back({"gelu", {x}, {x}, {{"approximate", false}}});
    const auto fuse = [&](const char* program, std::vector<TensorType> inputs, Dims results) {
      list.push_back({"fused_elementwise",
                      inputs,
                      std::vector<TensorType>(results.size(), inputs[0]),
                      {{"program", std::string(program)}, {"results", results}}});
    };
    fuse("add(0,1);relu(2)", {x, x}, {3});
    const TensorType rows{images_, {4096, 768}, {}}, bias{images_, {768}, {}};
    fuse("add(0,1);gelu(2)", {rows, bias}, {2, 3});
  }

  void add_pooling() {
    const TensorType large = image(16, 64, 64, "aBcd16b"), small = image(16, 64, 32, "aBcd16b");
    const Attributes overlapping{{"kernel", Dims{3, 3}}, {"stride", Dims{2, 2}}, {"padding", Dims{1, 1}}};
    const Attributes quads{{"kernel", Dims{2, 2}}, {"stride", Dims{2, 2}}, {"padding", Dims{0, 0}}};
    for (const Attributes& pool : {overlapping, quads}) {
      list.push_back({"max_pool2d", {large}, {small}, pool});
      list.push_back({"max_pool2d_backward", {small, large, small}, {large}, pool});
    }
    const TensorType last = image(64, 2048, 7, "aBcd16b"), pixel = image(64, 2048, 1, "aBcd16b");
    Attributes global{{"kernel", Dims{7, 7}}, {"stride", Dims{1, 1}}, {"padding", Dims{0, 0}}, {"count_padding", true}};
    list.push_back({"avg_pool2d", {last}, {pixel}, global});
    global.set("input_size", Dims{7, 7});
    list.push_back({"avg_pool2d_backward", {pixel}, {last}, global});
  }

  void add_rows_of_a_transformer() {
    const int64_t width = 768, count = 4096;
    const TensorType x{images_, {count, width}, {}}, channel = f32({width}), row = f32({count});
    list.push_back({"layer_norm", {x, channel, channel}, {x, row, row}, {{"epsilon", 1e-5}}});
    list.push_back({"layer_norm_backward", {x, x, channel, row, row}, {x, channel, channel}});
    const TensorType scores{images_, {16, 12, 128, 128}, {}};
    const Attributes last{{"axis", int64_t{-1}}};
    list.push_back({"softmax", {scores}, {scores}, last});
    list.push_back({"log_softmax", {scores}, {scores}, last});
    list.push_back({"softmax_backward", {scores, scores}, {scores}, last});
    list.push_back({"dropout",
                    {x, {DType::i64, {}, {}}, {DType::i64, {}, {}}},
                    {x},
                    {{"probability", 0.1}, {"stream", int64_t{1}}}});
    list.push_back({"reduce_sum", {x}, {channel}, {{"axes", Dims{0}}, {"keep_dims", false}}});
    list.push_back({"reduce_sum", {x}, {row}, {{"axes", Dims{1}}, {"keep_dims", false}}});
    list.push_back({"transpose", {x}, {{images_, {width, count}, {}}}, {{"permutation", Dims{1, 0}}}});
    const TensorType heads{images_, {16, 128, 12, 64}, {}}, apart{images_, {16, 12, 128, 64}, {}};
    list.push_back({"transpose", {heads}, {apart}, {{"permutation", Dims{0, 2, 1, 3}}}});
  }

  void add_moves() {
    const TensorType plain = image(16, 256, 32, ""), last = image(16, 256, 32, "acdb"),
                     blocked = image(16, 256, 32, "aBcd16b");
    for (const auto& [from, to] : {std::pair{plain, blocked}, {blocked, plain}, {last, blocked}, {blocked, last}})
      list.push_back({"reorder", {from}, {to}});
    if (images_ == DType::f32) return;
    const TensorType wide{DType::f32, plain.shape, {}};
    // A weight as kernels for pairs of bf16 numbers want it, forward and for the gradient of the data.
    const auto weight = [](DType dtype, const char* layout) {
      return TensorType{dtype, {512, 512, 3, 3}, parse_layout(layout, 4)};
    };
    const TensorType forward = weight(images_, "ABcd8b16a2b"), backward = weight(images_, "ABcd8a16b2a");
    list.push_back({"reorder", {forward}, {backward}});
    for (const TensorType& to : {weight(images_, ""), forward, backward})
      list.push_back({"cast", {weight(DType::f32, "")}, {to}, {{"dtype", std::string(name_of(images_))}}});
    list.push_back({"cast", {wide}, {plain}, {{"dtype", std::string(name_of(images_))}}});
    list.push_back({"cast", {plain}, {wide}, {{"dtype", std::string("f32")}}});
  }

  void add_updates() {
    const TensorType weight{DType::f32, {512, 512, 3, 3}, parse_layout("ABcd16b16a", 4)};
    list.push_back({"sgd_update",
                    {weight, weight, weight, f32({})},
                    {weight, weight},
                    {{"momentum", 0.9}, {"nesterov", false}, {"weight_decay", 1e-4}},
                    {0, 2}});
  }

  std::vector<Row> list;

 private:
  TensorType image(int64_t n, int64_t c, int64_t size, const std::string& layout) const {
    return {images_, {n, c, size, size}, parse_layout(layout, 4)};
  }
  const DType images_;
};

}  // namespace

std::vector<Row> kernel_rows(DType images) {
  Rows rows(images);
  for (const std::string layout : {"aBcd16b", "acdb", ""})
    for (const auto& [channels, size] : {std::pair<int64_t, int64_t>{64, 32}, {256, 32}, {512, 16}, {2048, 4}})
      rows.add_batch_norm(layout, channels, size);
  rows.add_elementwise();
  rows.add_pooling();
  rows.add_rows_of_a_transformer();
  rows.add_moves();
  if (images == DType::f32) rows.add_updates();
  return std::move(rows.list);
}

}  // namespace weft::benchmarks
