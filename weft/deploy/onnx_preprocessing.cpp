#include "weft/deploy/onnx_preprocessing.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/error.h"

namespace weft::deploy {

namespace {

constexpr int64_t kOpsetOfAntialiasing = 18;  // of Resize's attributes antialias and axes, and of CenterCropPad

/// Nodes that stand before the network, and what the last of them computes.
struct Front {
  onnx::Model& model;
  std::vector<onnx::OnnxNode> nodes = {};
  std::string last = "pixels";

  std::string constant(const std::string& name, Tensor value) {
    model.graph.initializers[name] = std::move(value);
    return name;
  }
  std::string integers(const std::string& name, const std::vector<int64_t>& values) {
    Tensor tensor(DType::i64, Shape{static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor.data_as<int64_t>());
    return constant(name, std::move(tensor));
  }
  onnx::OnnxNode& add(const std::string& op, const std::vector<std::string>& others, const std::string& output) {
    std::vector<std::string> inputs{last};
    inputs.insert(inputs.end(), others.begin(), others.end());
    last = output;
    return nodes.emplace_back(onnx::node_with_output(op, std::move(inputs), output));
  }
};

/// The sizes of a picture whose shorter side is `shorter`, as data::resize_shorter computes them, in whole numbers:
/// max(shorter, (size * shorter + side / 2) / side).
std::string add_sizes(Front& front, int64_t shorter) {
  const std::string target = front.integers("pixels.shorter_side", {shorter}), two = front.integers("pixels.two", {2});
  const auto add = [&](const std::string& op, const std::vector<std::string>& inputs, const std::string& output) {
    front.nodes.push_back(onnx::node_with_output(op, inputs, output));
    return output;
  };
  const std::string given = add("Shape", {"pixels"}, "pixels.given_sizes");
  front.nodes.back().attributes["start"].value = int64_t{2};
  const std::string side = add("ReduceMin", {given}, "pixels.given_side");
  const std::string product = add("Mul", {given, target}, "pixels.size_products");
  const std::string half = add("Div", {side, two}, "pixels.half_side");
  const std::string sum = add("Add", {product, half}, "pixels.size_sums");
  return add("Max", {add("Div", {sum, side}, "pixels.scaled_sizes"), target}, "pixels.sizes");
}

void add_resize(Front& front, const engine::PictureInput& pictures) {
  onnx::OnnxNode& resize = front.add("Resize", {"", "", add_sizes(front, pictures.resize)}, "pixels.resized");
  resize.attributes["mode"].value = std::string("linear");
  resize.attributes["antialias"].value = int64_t{1};
  resize.attributes["exclude_outside"].value = int64_t{1};  // nothing stands for pixels beyond the edge
  resize.attributes["axes"].value = std::vector<int64_t>{2, 3};
  const std::string size = front.integers("pixels.size", {pictures.height, pictures.width});
  front.add("CenterCropPad", {size}, "pixels.middle").attributes["axes"].value = std::vector<int64_t>{2, 3};
  // Whole numbers, as pictures in memory have them.
  Tensor half(DType::f32, Shape{});
  half.data_as<float>()[0] = 0.5F;
  front.add("Add", {front.constant("pixels.half", std::move(half))}, "pixels.above");
  front.add("Floor", {}, "pixels.whole");
}

void add_normalisation(Front& front, const engine::PictureInput& pictures, const std::string& network_input) {
  const auto per_channel = [&](const std::string& name, const auto& value_of) {
    Tensor tensor(DType::f32, Shape{pictures.channels, 1, 1});
    for (int64_t channel = 0; channel < pictures.channels; ++channel)
      tensor.data_as<float>()[channel] =
          static_cast<float>(value_of(double{pictures.mean[static_cast<size_t>(channel)]},
                                      double{pictures.deviation[static_cast<size_t>(channel)]}));
    return front.constant(name, std::move(tensor));
  };
  front.add("Mul", {per_channel("pixels.scale", [](double, double deviation) { return 1.0 / (255.0 * deviation); })},
            "pixels.scaled");
  front.add("Add", {per_channel("pixels.shift", [](double mean, double deviation) { return -mean / deviation; })},
            network_input);
}

}  // namespace

void add_preprocessing(onnx::Model& model, const engine::PictureInput& pictures) {
  onnx::ValueInfo& input = model.graph.inputs.at(0);
  if (!input.shape || input.shape->size() != 4)
    fail(ErrorKind::usage, "only pictures are prepared within an ONNX model; leave --preprocess away");
  const bool resizes = pictures.resize > 0;
  if (resizes && model.opset() < kOpsetOfAntialiasing)
    fail(ErrorKind::usage,
         "operators of version {} cannot resize pictures as the run did; say --opset {} or more, or "
         "leave --preprocess away",
         model.opset(), kOpsetOfAntialiasing);
  const std::string network_input = input.name;
  Front front{model};
  front.add("Cast", {}, "pixels.reals").attributes["to"].value = int64_t{1};
  if (resizes) add_resize(front, pictures);
  add_normalisation(front, pictures, network_input);
  // Sizes of the batch are read from the input's shape, wherever they are needed.
  for (onnx::OnnxNode& each : model.graph.nodes)
    if (each.op == "Shape" && each.inputs[0] == network_input) each.inputs[0] = "pixels";
  input.name = "pixels";
  input.dtype = DType::u8;
  if (resizes) {
    input.shape->at(2) = {.size = std::nullopt, .symbol = "height"};
    input.shape->at(3) = {.size = std::nullopt, .symbol = "width"};
  }
  model.graph.nodes.insert(model.graph.nodes.begin(), front.nodes.begin(), front.nodes.end());
}

}  // namespace weft::deploy
