// Chooses the layouts of a convolution's operands. Measured for the convolutions of ResNet-50, f32, on AVX-512:
// channels in blocks of 16 are as fast as channels-last forward, 2-4 % faster in the data gradient, 2-10 % in the
// weights' (against the best and the first implementation), and let that have the layout of the weights; so oneDNN's
// own first choice stands. The sums are in docs/performance.md.
#include "weft/cpu/onednn/convolution.h"

namespace weft::onednn {

namespace {

/// What one question to oneDNN leaves open; an absent layout is free.
struct Question {
  std::optional<Layout> image, weights, output;
};

struct Answer {
  Layout image, weights, output;
};

MemoryDesc describe_or_any(const TensorType& type, const std::optional<Layout>& layout, dnnl_data_type_t data_type) {
  if (layout)
    if (auto desc = MemoryDesc::with_layout(data_type, type.shape.dims(), *layout)) return *desc;
  return MemoryDesc::any(data_type, type.shape.dims());
}

/// The first implementation of at least this quality whose layouts weft can express.
std::optional<Answer> ask(const Convolution& c, const Engine& engine, const Question& question, Quality least) {
  const auto image_type = data_type_of(c.image.dtype), output_type = data_type_of(c.output.dtype);
  const auto weights = describe_weights(c, question.weights);
  if (!image_type || !output_type || !weights) return std::nullopt;
  PrimitiveDesc desc = ask_convolution(
      engine, {c.pass, describe_or_any(c.image, question.image, *image_type), *weights,
               describe_or_any(c.output, question.output, *output_type), c.stride, c.padding, c.dilation});
  for (; desc; desc.next()) {
    if (desc.quality() < least) continue;
    const auto image = desc.memory_desc(c.pass == Pass::backward_data ? dnnl_query_diff_src_md : dnnl_query_src_md);
    const auto output = desc.memory_desc(c.pass == Pass::forward ? dnnl_query_dst_md : dnnl_query_diff_dst_md);
    const auto filter =
        desc.memory_desc(c.pass == Pass::backward_weights ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
    const auto image_layout = image.layout(), output_layout = output.layout();
    if (!image_layout || !output_layout) continue;
    // Weights whose groups are padded apart have no 4-D layout: they stay plain and the kernel reorders them.
    const auto filter_layout = weights_layout(c, filter);
    if (!filter_layout && c.groups == 1) continue;
    return Answer{*image_layout, filter_layout.value_or(Layout{}), *output_layout};
  }
  return std::nullopt;
}

/// The layout that a tensor has, unless it is plain: then nobody has chosen yet.
std::optional<Layout> chosen(const TensorType& type) {
  return type.layout.is_plain() ? std::nullopt : std::optional(type.layout);
}

/// From the most to the least that the operands keep.
std::vector<Question> questions(const Convolution& c, const Engine& engine) {
  switch (c.pass) {
    case Pass::forward:
      break;
    case Pass::backward_data:
      return {{{}, c.weights.layout, chosen(c.output)}, {{}, {}, chosen(c.output)}, {}};
    case Pass::backward_weights: {
      Convolution forward = c;
      forward.pass = Pass::forward;
      const auto wanted = [&](const Question& question) -> std::optional<Layout> {
        const auto answer = ask(forward, engine, question, Quality::direct);
        return answer ? std::optional(answer->weights) : std::nullopt;
      };
      const Question keep_both{c.image.layout, {}, c.output.layout};
      const Question keep_chosen{chosen(c.image), {}, chosen(c.output)};
      return {{keep_both.image, wanted(keep_both), keep_both.output},
              {keep_chosen.image, wanted(keep_chosen), keep_chosen.output},
              keep_both,
              keep_chosen,
              {{}, wanted({}), {}},
              {}};
    }
  }
  return {{}};
}

/// Winograd's data gradient reads the weights as the forward pass has them; image and output are the direct kernel's.
void take_winograd_weights(const Convolution& c, const Engine& engine, Answer& answer) {
  const auto image = describe({c.image.dtype, c.image.shape, answer.image}),
             output = describe({c.output.dtype, c.output.shape, answer.output});
  if (!image || !output) return;
  if (const PrimitiveDesc desc = ask_winograd(engine, c, *image, *output))
    if (const auto layout = weights_layout(c, desc.memory_desc(dnnl_query_weights_md))) answer.weights = *layout;
}

}  // namespace

namespace {

/// Those of the convolution alone, where oneDNN fuses what follows it in these; else nullopt.
std::optional<LayoutChoice> preferred_fused_layouts(const Convolution& c, const Engine& engine) {
  auto choice = preferred_convolution_layouts(c.unfused(), engine);
  if (!choice) return std::nullopt;
  Convolution laid_out = c;
  laid_out.image.layout = choice->inputs[0];
  laid_out.weights.layout = choice->inputs[1];
  laid_out.output.layout = choice->outputs[0];
  if (why_not_fused(laid_out, engine)) return std::nullopt;
  if (c.residual) choice->inputs.push_back(choice->outputs[0]);
  return choice;
}

}  // namespace

std::optional<LayoutChoice> preferred_convolution_layouts(const Convolution& c, const Engine& engine) {
  if (c.is_fused) return preferred_fused_layouts(c, engine);
  const auto asked = questions(c, engine);
  std::optional<Answer> answer;
  for (const Quality least : {Quality::direct, Quality::gemm})
    for (const auto& question : asked)
      if (!answer) answer = ask(c, engine, question, least);
  if (!answer) return std::nullopt;
  if (c.winograd > 0 && c.pass == Pass::backward_data) take_winograd_weights(c, engine, *answer);
  LayoutChoice choice;
  switch (c.pass) {
    case Pass::forward:
      choice = {{answer->image, answer->weights}, {answer->output}};
      if (c.bias) choice.inputs.push_back({});
      break;
    case Pass::backward_data:
      choice = {{answer->output, answer->weights}, {answer->image}};
      break;
    case Pass::backward_weights:
      choice = {{answer->image, answer->output}, {answer->weights}};
      if (c.bias) choice.outputs.push_back({});
      break;
  }
  return choice;
}

}  // namespace weft::onednn
