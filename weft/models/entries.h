// One function per family of models, each in the file of its name; model.cpp lists them.
#pragma once

#include "weft/models/model.h"

namespace weft::models {

ModelEntry mlp_entry();
ModelEntry lenet5_entry();
ModelEntry alexnet_entry();
ModelEntry vgg16_entry();
ModelEntry resnet9_entry();
ModelEntry resnet20_entry();
ModelEntry resnet18_entry();
ModelEntry resnet34_entry();
ModelEntry resnet50_entry();
ModelEntry resnet50_128_entry();
ModelEntry resnet101_entry();
ModelEntry resnet152_entry();
ModelEntry resnest269_entry();
ModelEntry wide_resnet50_2_entry();
ModelEntry wide_resnet_entry();
ModelEntry densenet121_entry();
ModelEntry mobilenet_v2_entry();
ModelEntry vit_tiny_entry();
ModelEntry unet_small_entry();
ModelEntry autoencoder_entry();
ModelEntry lstm_classifier_entry();
ModelEntry seq2seq_attention_entry();
ModelEntry crnn_entry();
ModelEntry transformer_lm_entry();
ModelEntry airbench94_entry();

}  // namespace weft::models
