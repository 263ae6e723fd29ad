// What an ONNX model does with pixels before its network reads them, as nodes of the model itself.
#pragma once

#include "weft/engine/picture_input.h"
#include "weft/onnx/file/model.h"

namespace weft::deploy {

/// Instead of its first input, which must be f32 [N,C,H,W], the model reads `pixels` u8, and computes
/// (pixels / 255 - mean) / deviation. Where `pictures` says a shorter side (resize > 0), pixels are [N,C,height,width]
/// of any size: they are resized to it, with a triangle filter as wide as the reduction, and the middle is cut out. The
/// nodes give the bytes that data::resize_shorter and copy_middle give, save where a sum in f32 lies within rounding of
/// a half, and for pictures that are more than 16 times as long as wide, of which those keep the middle alone.
/// Error(usage) where the input is of another shape, or where the model's opset is below 18 and pictures are resized.
void add_preprocessing(onnx::Model& model, const engine::PictureInput& pictures);

}  // namespace weft::deploy
