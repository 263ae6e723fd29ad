#include "weft/data/load/write_samples.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/data/load/loader.h"
#include "weft/tensor/npy.h"

namespace weft::data {

namespace {

/// A place for all rows, in the shape of a batch.
Tensor room_for(const Tensor& batch, int64_t rows) {
  Shape shape = batch.shape();
  shape[0] = rows;
  if (!has_bounded_size(shape)) fail(ErrorKind::usage, "{} samples are too many for one file; ask for fewer", rows);
  return Tensor(batch.dtype(), shape);
}

void copy_rows(const Tensor& batch, int64_t rows, Tensor& all, int64_t at) {
  const int64_t row_bytes = all.shape()[0] == 0 ? 0 : all.bytes() / all.shape()[0];
  std::copy_n(batch.data_as<std::byte>(), rows * row_bytes, all.data_as<std::byte>() + at * row_bytes);
}

}  // namespace

int64_t write_samples(const Dataset& dataset, const ChannelStatistics& statistics, int64_t most,
                      const std::filesystem::path& folder, const std::string& part) {
  const int64_t count = most > 0 ? std::min(most, dataset.size()) : dataset.size();
  LoaderOptions options;
  options.batch = std::min<int64_t>(count, 64);
  options.workers = 0;
  options.statistics = statistics;
  const Loader loader(dataset, options);
  Tensor samples, targets;
  for (int64_t done = 0, step = 0; done < count; ++step) {
    const Batch batch = loader.load_batch(0, step);
    if (step == 0) {
      samples = room_for(batch.samples, count);
      targets = room_for(batch.targets, count);
    }
    const int64_t rows = std::min(batch.count, count - done);
    copy_rows(batch.samples, rows, samples, done);
    copy_rows(batch.targets, rows, targets, done);
    done += rows;
  }
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) fail(ErrorKind::io, "cannot make the folder '{}': {}", folder.string(), code.message());
  write_npy(folder / (part + "_samples.npy"), samples);
  write_npy(folder / (part + "_targets.npy"), targets);
  return count;
}

}  // namespace weft::data
