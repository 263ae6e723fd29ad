// From the text a user writes, "cifar10:DIR", to a data set; and the kinds of data sets that such texts can name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/data/dataset/data_spec.h"
#include "weft/data/dataset/dataset.h"

namespace weft::data {

/// A kind of data set: what stands before the colon of a spec, and what to do with the rest.
struct DatasetKind {
  std::string name, form, summary;  // "cifar10", "cifar10:DIR", one sentence
  /// Reads one split. `encoding` as in open_dataset(). Error(usage), (io) or (data), each naming the next step.
  std::function<std::unique_ptr<Dataset>(const DataSpec& spec, Split split, const std::string& encoding)> open;
  /// Whether the files come with test data, or a part of them is set aside as such. Empty: they do.
  std::function<bool(const DataSpec&)> has_test_split = {};
  /// Whether Split::all can be asked for: the files are one, and only weft divides them. Empty: it cannot.
  std::function<bool(const DataSpec&)> has_whole = {};
  /// The same data by paths that mean the same from any directory. Empty: the spec names no files.
  std::function<DataSpec(DataSpec)> with_absolute_paths = {};
  /// Whether samples are decoded from pictures, so that decode=exact can be asked for. Empty: they are not.
  std::function<bool(const DataSpec&)> decodes_pictures = {};
};

/// Those that come with weft, each with an own name:
///   fashion-mnist[:DIR]                                 Debian's package dataset-fashion-mnist, or a folder like it
///   idx:IMAGES,LABELS[,TEST_IMAGES,TEST_LABELS]         IDX files, gzip or not; images (N,H,W) or (N,C,H,W)
///   cifar10:DIR                                         the binary version: data_batch_1.bin ... test_batch.bin
///   images:DIR[?size=128&...]                           a folder of pictures per class, see formats/image_folder.h
///   csv:FILE[?label=COLUMN&...]                         a table, see formats/csv.h
///   text:FILE[?length=128&...]                          a text, character by character, see formats/text.h
///   pairs:FILE[?test=FILE&...]                          texts and what they become, see formats/pairs.h
///   lines:PATH[?test=PATH&...]                          pictures of lines of text, see formats/text_images.h
///   labelled:FILE[?label=2&...]                         texts in classes, see formats/labelled.h
///   masks:DIR[?height=128&...]                          pictures with a class per pixel, see formats/masks.h
///   packed:DIR[?max_bad_records=1%...]                  records that `weft pack` wrote, see formats/packed.h
const std::vector<DatasetKind>& standard_dataset_kinds();

/// Reads one split of the data set that `spec` names.
/// `encoding`: that of the training split's info, for every other split and for other data that a trained model shall
/// read; empty for a training split, which learns it.
/// Error(usage) for an unknown kind, with the nearest name; Error(io) for missing files and Error(data) for malformed
/// ones, each naming the file and the next step.
std::unique_ptr<Dataset> open_dataset(const std::vector<DatasetKind>& kinds, const std::string& spec, Split split,
                                      const std::string& encoding = "");
/// Of the kinds that come with weft.
std::unique_ptr<Dataset> open_dataset(const std::string& spec, Split split, const std::string& encoding = "");

/// What the kind of `spec` says; of an unknown kind, which open_dataset() will refuse, true, false, false and `spec`
/// itself.
bool has_test_split(const std::vector<DatasetKind>& kinds, const std::string& spec);
bool has_whole(const std::vector<DatasetKind>& kinds, const std::string& spec);
bool decodes_pictures(const std::vector<DatasetKind>& kinds, const std::string& spec);
/// "cifar10:DIR" with a DIR that means the same from any directory; likewise the files of the other kinds.
std::string with_absolute_paths(const std::vector<DatasetKind>& kinds, const std::string& spec);

/// For DatasetKind::with_absolute_paths, where the argument of a spec is one path.
DataSpec with_absolute_argument(DataSpec spec);

/// For help texts: "fashion-mnist[:DIR], idx:..., csv:..."
std::string dataset_forms(const std::vector<DatasetKind>& kinds);

}  // namespace weft::data
