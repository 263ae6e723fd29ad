#include "weft/infer/token_reader.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/program/run_data.h"
#include "weft/step/step.h"

namespace weft::infer {

namespace {

// Of the plan that reads many at once: enough for the products to be bound by arithmetic.
constexpr int64_t kChunk = 64;
// Fewer are read one by one: a chunk takes about as long as so many single tokens.
constexpr int64_t kWorthChunk = 8;

models::ModelInput input_of(const spec::DataDescription& data, int64_t new_tokens) {
  models::ModelInput input = program::model_input(data, 1);
  input.new_tokens = new_tokens;
  return input;
}

/// The states that the model has beside those that were trained start at zero.
void add_caches(const Library& library, run::LoadedRun& run) {
  const models::Model model = models::build(library.ops, models::find_model(library.models, run.spec.model.name),
                                            input_of(run.data, 1), run.spec.model.options, models::Mode::inference);
  for (const models::ParameterSpec& parameter : model.parameters)
    if (!run.state.has(parameter.name)) run.state.set(parameter.name, models::initialize(parameter, 0));
}

}  // namespace

bool TokenReader::serves(const Library& library, const run::LoadedRun& run) {
  return models::find_model(library.models, run.spec.model.name).generates;
}

TokenReader::TokenReader(const Library& library, const Device& device, run::LoadedRun& run,
                         const CompileOptions& options)
    : window_(run.data.info.sample_shape[0]),
      state_(run.state),
      program_(
          [&library, &run](const spec::StepShape& shape) {
            return step::build_prediction_step(library, run.spec, input_of(run.data, shape.batch));
          },
          device, options),
      driver_(program_, state_) {
  check(serves(library, run), "the model keeps keys and values");
  add_caches(library, run);
}

std::span<const float> TokenReader::read(std::span<const int32_t> tokens) {
  check(!tokens.empty(), "there is a token to read");
  int64_t known = static_cast<int64_t>(tokens_.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  if (const auto all = static_cast<int64_t>(tokens_.size()); all > window_) {
    // A text that is longer to begin with fills the window; one that grows beyond it leaves room to go on.
    const int64_t kept = known == 0 ? window_ : std::max<int64_t>(1, window_ / 2);
    tokens_.erase(tokens_.begin(), tokens_.end() - std::min(kept, all));
    known = 0;
  }
  read_from(known);
  return following_;
}

void TokenReader::read_from(int64_t position) {
  const auto all = static_cast<int64_t>(tokens_.size()), chunk = std::min(kChunk, window_);
  while (position < all) {
    if (all - position < kWorthChunk && chunk > 1) {
      run_tokens(position++, 1);
      continue;
    }
    // A chunk that would reach beyond the window begins earlier: what it reads again gives the same.
    const int64_t first = std::min(position, window_ - chunk);
    run_tokens(first, chunk);
    position = first + chunk;
  }
}

void TokenReader::run_tokens(int64_t first, int64_t count) {
  if (driver_.shape() != spec::StepShape(count)) {
    batch_.samples = Tensor(DType::i32, Shape{1, count});
    batch_.targets = Tensor(DType::i32, Shape{1, count});
    batch_.count = 1;
    driver_.select(count);
  }
  // Causal: nothing reads the rows behind the last token before tokens that come later have taken their places.
  const int64_t known = std::min(count, static_cast<int64_t>(tokens_.size()) - first);
  auto* const samples = batch_.samples.data_as<int32_t>();
  std::fill_n(std::copy_n(tokens_.begin() + first, known, samples), count - known, 0);
  driver_.bind_batch(batch_);
  driver_.set_scalar("position", first);
  driver_.run();
  const Tensor probabilities = driver_.executor().output("probabilities");
  const int64_t classes = probabilities.shape()[1];
  const float* const row = probabilities.data_as<float>() + (known - 1) * classes;
  following_.assign(row, row + classes);
}

}  // namespace weft::infer
