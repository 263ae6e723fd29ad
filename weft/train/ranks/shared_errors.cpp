#include "weft/train/ranks/shared_errors.h"

#include <algorithm>
#include <cstring>

#include "weft/step/compression.h"

namespace weft::train {

namespace {

constexpr int64_t kChunkElements = 1 << 20;  // reduced at a time, so that errors take no memory twice

}  // namespace

SharedErrors::SharedErrors(comm::Collectives* collectives, State& state) : collectives_(collectives), state_(state) {
  if (collectives == nullptr || collectives->size() == 1) return;
  const std::vector<std::string> names = state.names();
  if (std::none_of(names.begin(), names.end(), step::is_compression_error)) return;
  chunk_ = collectives->allocate(kChunkElements * static_cast<int64_t>(sizeof(float)));
  id_ = collectives->prepare({"errors of compression", DType::f32, comm::Reduction::mean, {kChunkElements}});
}

void SharedErrors::average() {
  if (!exist()) return;
  void* const chunk = chunk_.get();
  for (const std::string& name : state_.names()) {
    if (!step::is_compression_error(name)) continue;
    const int64_t elements = state_.type(name).bytes() / static_cast<int64_t>(sizeof(float));
    for (int64_t begin = 0; begin < elements; begin += kChunkElements) {
      const int64_t offset = begin * static_cast<int64_t>(sizeof(float));
      const std::span part(chunk_.get(),
                           static_cast<size_t>(std::min(kChunkElements, elements - begin)) * sizeof(float));
      std::memset(chunk, 0, kChunkElements * sizeof(float));
      state_.read(name, offset, part);
      collectives_->start(id_, std::span(&chunk, 1));
      collectives_->wait(id_);
      state_.write(name, offset, part);
    }
  }
}

}  // namespace weft::train
