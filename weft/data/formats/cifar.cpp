#include "weft/data/formats/cifar.h"

#include <fmt/format.h>

#include <system_error>

#include "weft/base/error.h"
#include "weft/base/files.h"

namespace weft::data {

namespace {
constexpr size_t kPixels = 3 * 32 * 32, kRecord = 1 + kPixels;
constexpr int64_t kClasses = 10;
}  // namespace

std::unique_ptr<Dataset> read_cifar10(const std::filesystem::path& directory, Split split) {
  std::vector<std::string> names;
  if (split == Split::test)
    names.push_back("test_batch.bin");
  else
    for (int part = 1; part <= 5; ++part) names.push_back(fmt::format("data_batch_{}.bin", part));

  std::vector<uint8_t> pixels, labels;
  for (const std::string& name : names) {
    const std::filesystem::path path = directory / name;
    std::error_code code;
    const bool exists = std::filesystem::exists(path, code);
    if (code) fail(ErrorKind::io, "[cifar10] cannot open '{}': {}; check the path", path.string(), code.message());
    if (!exists)
      fail(ErrorKind::io,
           "[cifar10] no file '{}'; give the folder with the binary version's data_batch_1.bin ... test_batch.bin "
           "(cifar-10-binary.tar.gz, unpacked): cifar10:DIR",
           path.string());
    const std::vector<uint8_t> bytes = read_bytes(path);
    if (bytes.empty() || bytes.size() % kRecord != 0)
      fail(ErrorKind::data, "[cifar10] '{}' has {} bytes, want a multiple of {} (a label and 3x32x32 pixels); it is {}",
           path.string(), bytes.size(), kRecord, bytes.empty() ? "empty" : "truncated or another format");
    pixels.reserve(pixels.size() + bytes.size() / kRecord * kPixels);
    for (size_t at = 0; at < bytes.size(); at += kRecord) {
      if (bytes[at] >= kClasses)
        fail(ErrorKind::data, "[cifar10] '{}': label {} of record {} is out of range: there are {} classes",
             path.string(), bytes[at], at / kRecord, kClasses);
      labels.push_back(bytes[at]);
      const uint8_t* first = bytes.data() + at + 1;
      pixels.insert(pixels.end(), first, first + kPixels);
    }
  }
  DatasetInfo info{"cifar10",
                   Shape{3, 32, 32},
                   kClasses,
                   {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}};
  return std::make_unique<MemoryDataset>(std::move(info), std::move(pixels), std::move(labels));
}

}  // namespace weft::data
