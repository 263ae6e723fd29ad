// weft's own kernels for everything that is bound by memory, one file per family of ops: on numbers in f32 and, where
// a loop is a template over the stored type, in bf16, computing in f32 in either case.
#pragma once

#include <memory>
#include <string>

#include "weft/base/isa.h"
#include "weft/device/kernel.h"

namespace weft::native {

// Each registers the kernels of its ops, with loops compiled for the given instruction set.
void add_batch_norm(KernelTable&, Isa);  // batch_norm, batch_statistics
void add_batch_norm_inference(KernelTable&, Isa);
void add_batch_norm_backward(KernelTable&, Isa);  // batch_norm_backward
void add_elementwise(KernelTable&, Isa);          // unary, binary and scalar ops, fused_elementwise
void add_forward_elementwise(KernelTable&, Isa);  // the same without those of gradients
void add_update(KernelTable&, Isa);             // sgd_update, adamw_update, running_average, blend_update, squared_norm
void add_few_channels(KernelTable&, Isa);       // conv2d_backward_weights of images of few channels
void add_few_channels_data(KernelTable&, Isa);  // conv2d_backward_data of images of few channels
void add_winograd(KernelTable&, Isa);           // conv2d and its gradients of 3x3 on bf16
void add_winograd_weights(KernelTable&, Isa);   // the weights' of them
void add_pool(KernelTable&, Isa);               // max_pool2d, avg_pool2d
void add_pool_gradients(KernelTable&, Isa);     // max_pool2d_backward, avg_pool2d_backward
void add_resample(KernelTable&, Isa);           // resize, adaptive_avg_pool2d and their gradients
void add_reduce(KernelTable&, Isa);             // reduce_sum, reduce_mean, reduce_prod, reduce_max, reduce_min
void add_softmax(KernelTable&, Isa);            // softmax, log_softmax
void add_softmax_backward(KernelTable&, Isa);
void add_losses(KernelTable&, Isa);  // cross_entropy, cross_entropy_backward
void add_argmax(KernelTable&, Isa);  // argmax, count_correct
void add_ctc(KernelTable&, Isa);     // ctc_loss, ctc_loss_backward
void add_layer_norm(KernelTable&, Isa);
void add_layer_norm_backward(KernelTable&, Isa);
void add_embedding(KernelTable&, Isa);            // embedding, embedding_backward, causal_mask
void add_few_positions(KernelTable&, Isa);        // fused_conv2d of few positions by many weights
void add_few_rows(KernelTable&, Isa);             // matmul of few rows
void add_lstm_few_rows(KernelTable&, Isa);        // lstm of few rows
void add_cached_attention(KernelTable&, Isa);     // cached_attention
void add_fused_attention(KernelTable&, Isa);      // fused_attention
void add_dropout(KernelTable&, Isa);              // dropout
void add_copies(KernelTable&, Isa);               // constant, broadcast_to, slice, concat, pad
void add_transpose(KernelTable&, Isa);            // transpose
void add_cast(KernelTable&, Isa);                 // cast
void add_reorder(KernelTable&, Isa);              // reorder
void add_integer_matmul(KernelTable&, Isa);       // integer_matmul, quantized_matmul, dequantized_matmul
void add_integer_convolution(KernelTable&, Isa);  // integer_conv2d, quantized_conv2d
void add_byte_pool(KernelTable&, Isa);            // max_pool2d of i8 and u8
void add_quantize(KernelTable&,
                  Isa);  // quantize_linear, dequantize_linear, requantize, quantized_affine, quantized_add
void add_weight_tiles(KernelTable&, Isa);  // cast and reorder of weights in tiles: before all other kernels of theirs

/// Registers the families that inference wants, for one instruction set.
void add_forward_kernels(KernelTable&, Isa);
/// Registers every family for one instruction set.
void add_kernels(KernelTable&, Isa);

/// Sets `why_not` and returns null: "return declined(why_not, ...)" in a factory.
inline std::unique_ptr<Kernel> declined(std::string& why_not, std::string reason) {
  why_not = std::move(reason);
  return nullptr;
}

/// True where every operand is plain, of whatever dtype; else says which is not.
bool all_plain(const NodeSignature& node, std::string& why_not);
/// True where all operands are plain, the first `inputs` and `outputs` of them f32 or bf16, all alike, and the others
/// f32; else says which is not.
bool plain_images(const NodeSignature& node, size_t inputs, size_t outputs, std::string& why_not);
/// True where every operand is f32 and plain; else says which is not.
bool all_plain_f32(const NodeSignature& node, std::string& why_not);
/// True where every operand is plain and f32 but for the labels, the last input; else says which is not.
bool logits_and_labels(const NodeSignature& node, std::string& why_not);

}  // namespace weft::native
