// How a camera was held: the orientation in the EXIF data of a picture, and the picture turned upright by it.
#pragma once

#include <cstdint>
#include <span>

#include "weft/data/pictures/image.h"

namespace weft::data {

/// The value of the tag Orientation (0x0112), 1 to 8, in the EXIF data of a JPEG's APP1 segment ("Exif\0\0", then a
/// TIFF header with its first directory); 1, as it is, where there is none or it cannot be read.
/// https://www.cipa.jp/std/documents/e/DC-008-2012_E.pdf, 4.6.4
int exif_orientation(std::span<const uint8_t> segment);
/// The same of a PNG file's chunk eXIf, which holds the TIFF header and what follows it.
/// https://www.w3.org/TR/png-3/#eXIf
int png_orientation(std::span<const uint8_t> file);

/// Turned and mirrored so that the first row of the result is the top of the scene, as Pillow's exif_transpose() does.
Image upright(Image image, int orientation);

}  // namespace weft::data
