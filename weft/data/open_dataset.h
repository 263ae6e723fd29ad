// From the text a user writes, "cifar10:DIR", to a data set.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/data/dataset.h"

namespace weft::data {

/// Reads one split of the data set that `spec` names:
///   fashion-mnist[:DIR]                                 Debian's package dataset-fashion-mnist, or a folder like it
///   idx:IMAGES,LABELS[,TEST_IMAGES,TEST_LABELS]         IDX files, gzip or not; images (N,H,W) or (N,C,H,W)
///   cifar10:DIR                                         the binary version: data_batch_1.bin ... test_batch.bin
/// Error(usage) for an unknown kind, with the nearest name; Error(io) for missing files and Error(data) for malformed
/// ones, each naming the file and the next step.
std::unique_ptr<Dataset> open_dataset(const std::string& spec, Split split);

struct DatasetKind {
  std::string name, form, summary;  // "cifar10", "cifar10:DIR", one sentence
};
/// For help texts.
const std::vector<DatasetKind>& dataset_kinds();

}  // namespace weft::data
