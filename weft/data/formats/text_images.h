// lines:PATH: pictures of lines of text with what they say. PATH is a list, PICTURE<TAB>TEXT on each line with paths
// from the list's folder on, or a folder of pictures NAME.png (or .jpg ...) with their texts in NAME.gt.txt, as
// tesstrain and Kraken want them. Options, after a '?' and divided by '&':
//   test=PATH            list or folder of the test pictures; default: a part of PATH
//   split=0.1, seed=0    how large a part, and which
//   height=32            of a sample
//   width=N              of a sample; default: that of the widest of 256 pictures, at this height
//   length=N             most characters of a text; default: of the longest one. Longer ones are left out with a note
//   channels=1           1 (grey) or 3 (RGB)
//   decode=scaled        exact: every pixel of a JPEG, as other programs decode it (pictures/image.h)
//   cache=auto           MB of decoded pictures to keep in memory; 0: decode each time; auto: by free memory
//   disk=auto            MB of those that find no place there to keep in a temporary file
// A picture is scaled to the height; its last column fills the width up, and what is wider is squeezed. The vocabulary
// holds the characters of all texts behind the blank (class 0), which also fills up the targets.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "weft/data/dataset/data_spec.h"
#include "weft/data/dataset/dataset.h"
#include "weft/data/pictures/image.h"
#include "weft/data/texts/token_table.h"

namespace weft::data {

/// Samples are u8 (C,H,W), targets i32 (L). `encoding` as in open_dataset().
std::unique_ptr<Dataset> open_text_images(const DataSpec& spec, Split split, const std::string& encoding);
bool text_images_have_test_split(const DataSpec& spec);

/// A picture of a line of text as a sample of this shape.
Image fit_line(const Image& image, const Shape& sample_shape);

/// The same of a file.
Image read_line_picture(const std::filesystem::path& path, const DatasetInfo& info);

/// What a trained model knows of such pictures: their size and the characters.
struct TextImageEncoding {
  static constexpr int32_t kBlank = 0;
  TokenTable table;
  int64_t channels, height, width, length;
  bool exact = false;  // decode=exact

  static TextImageEncoding from_json(const std::string& text);
  std::string to_json() const;
};

}  // namespace weft::data
