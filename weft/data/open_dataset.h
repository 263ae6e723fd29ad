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
///   images:DIR[?size=128&...]                           a folder of pictures per class, see formats/image_folder.h
///   csv:FILE[?label=COLUMN&...]                         a table, see formats/csv.h
///   text:FILE[?length=128&...]                          a text, character by character, see formats/text.h
/// `encoding`: that of the training split's info, for every other split and for other data that a trained model shall
/// read; empty for a training split, which learns it.
/// Error(usage) for an unknown kind, with the nearest name; Error(io) for missing files and Error(data) for malformed
/// ones, each naming the file and the next step.
std::unique_ptr<Dataset> open_dataset(const std::string& spec, Split split, const std::string& encoding = "");

/// Whether the files come with test data, or a part of them is set aside as such.
bool has_test_split(const std::string& spec);
/// Whether Split::all can be asked for: the files are one, and only weft divides them.
bool has_whole(const std::string& spec);

/// "cifar10:DIR" with a DIR that means the same from any directory; likewise the files of the other kinds.
std::string with_absolute_paths(const std::string& spec);

struct DatasetKind {
  std::string name, form, summary;  // "cifar10", "cifar10:DIR", one sentence
};
/// For help texts.
const std::vector<DatasetKind>& dataset_kinds();
/// "fashion-mnist[:DIR], idx:..., or csv:..."
std::string dataset_forms();

}  // namespace weft::data
