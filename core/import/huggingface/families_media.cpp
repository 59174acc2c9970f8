// SPDX-License-Identifier: Apache-2.0
// Transformers that see or hear.
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/import/huggingface/family_functions.h"

namespace turnpoint::huggingface {

namespace {

/// The first entry of `architectures`; empty where there is none.
std::string first_architecture(ConfigReader& c) {
  const auto& json = c.fields().json();
  const auto found = json.find("architectures");
  if (found == json.end() || !found->is_array() || found->empty() || !found->front().is_string()) return {};
  return found->front().get<std::string>();
}

/// One size for both sides, or [height, width].
std::pair<std::int64_t, std::int64_t> sides(ConfigReader& c, std::string_view key, std::int64_t otherwise) {
  const auto& json = c.fields().json();
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) {
    const std::int64_t both = c.width({key}, otherwise);
    return {both, both};
  }
  std::int64_t size[2] = {0, 0};
  for (std::size_t i = 0; i < found->size() && i < 2; ++i)
    if ((*found)[i].is_number_unsigned() && (*found)[i].get<std::uint64_t>() <= ConfigReader::kMaximumWidth)
      size[i] = (*found)[i].get<std::int64_t>();
  if (found->size() != 2 || size[0] < 1 || size[1] < 1)
    c.fail(key, fmt::format("must be a size or two of them, height and width, up to {}", ConfigReader::kMaximumWidth));
  return {size[0], size[1]};
}

}  // namespace

TransformerShape vit(ConfigReader& c) {
  TransformerShape s;
  s.hidden = c.width({"hidden_size"}, 768);
  s.layers = c.layers({"num_hidden_layers"}, 12);
  c.heads(s, {"num_attention_heads"}, 12);
  s.intermediate = c.width({"intermediate_size"}, 3072);
  s.activation = c.text({"hidden_act"}, "gelu");
  s.qkv_bias = c.flag("qkv_bias", true);
  s.output_bias = s.mlp_bias = s.label_bias = true;
  auto& image = s.image;
  std::tie(image.height, image.width) = sides(c, "image_size", 224);
  std::tie(image.patch_height, image.patch_width) = sides(c, "patch_size", 16);
  image.channels = c.integer({"num_channels"}, 1 << 16, 3);
  if (!c.good()) return s;
  if (image.height < image.patch_height || image.width < image.patch_width) {
    c.fail("patch_size", "is larger than the picture");
    return s;
  }
  s.positions = image.patches() + 1;
  const std::string architecture = first_architecture(c);
  if (architecture == "ViTModel") {
    s.pooler = true;
    s.warnings.emplace_back("ViTModel has no loss: training is counted as far as its pooled result");
    return s;
  }
  if (!architecture.empty() && architecture != "ViTForImageClassification") {
    c.fail("architectures",
           fmt::format("'{}' is not supported: ViTForImageClassification and ViTModel are", architecture));
    return s;
  }
  const auto& json = c.fields().json();
  const auto labels = json.find("id2label");
  const bool listed = labels != json.end() && labels->is_object() && !labels->empty();
  s.labels = c.integer({"num_labels"}, ConfigReader::kMaximumVocabulary, listed ? std::int64_t(labels->size()) : 2);
  return s;
}

TransformerShape whisper(ConfigReader& c) {
  TransformerShape s;
  const std::string architecture = first_architecture(c);
  if (!architecture.empty() && architecture != "WhisperForConditionalGeneration" && architecture != "WhisperModel")
    c.fail("architectures",
           fmt::format("'{}' is not supported: WhisperForConditionalGeneration and WhisperModel are", architecture));
  encoder_decoder(c, s, 384, 4, 6);
  c.vocabulary(s, 51865, 448, {"max_target_positions"});
  s.activation = c.text({"activation_function"}, "gelu");
  s.learned_positions = s.qkv_bias = s.output_bias = s.mlp_bias = true;
  s.key_bias = false;
  s.tied_head = c.flag("tie_word_embeddings", true);
  s.audio.bins = c.integer({"num_mel_bins"}, 1 << 16, 80);
  s.audio.positions = c.integer({"max_source_positions"}, 1 << 24, 1500);
  return s;
}

}  // namespace turnpoint::huggingface
