// SPDX-License-Identifier: Apache-2.0
// Names, parameters and descriptions of the built-in models.
#include <fmt/format.h>
#include <algorithm>

#include "core/base/text.h"
#include "core/import/builtin/networks.h"
#include "core/import/source/hidden_size.h"
#include "core/import/source/model_source.h"

namespace turnpoint {

namespace {

struct Parameter {
  const char* key;
  std::int64_t NetworkParameters::*field;
  std::int64_t maximum;
};
constexpr Parameter kParameters[] = {{"layers", &NetworkParameters::layers, 4096},
                                     {"hidden", &NetworkParameters::hidden, 1 << 20},
                                     {"width", &NetworkParameters::width, 1 << 20},
                                     {"batch", &NetworkParameters::batch, 1 << 24},
                                     {"sequence", &NetworkParameters::sequence, 1 << 24}};

struct Entry {
  const char* name;
  NetworkFunction build;
  /// Defaults by kParameters' order without batch; 0: the model does not have the parameter. -1: derived from others.
  std::int64_t layers, hidden, width, sequence;
  const char* description;
};

constexpr std::int64_t kDerived = -1;

constexpr Entry kEntries[] = {
    {"rnn", build_rnn, 8, 20480, 0, 20,
     "RNN of the TensorOpt study, 108 GiB in fp32: 8 LSTM layers of 20480 units, 51200 words, 20 steps"},
    {"wide-resnet", build_wide_resnet, 50, 0, 816, 0,
     "WideResNet of the TensorOpt study, 7.3 GiB in fp32: ResNet-50 with bottlenecks 12.75 times as wide (816), images "
     "of 200 x 200"},
    {"transformer", build_study_transformer, 32, 2560, kDerived, 48,
     "Transformer of the TensorOpt study, 9.7 GiB in fp32: 32 decoder layers of 2560, MLP 10240, 32 heads, 16384 "
     "words, 48 tokens"},
    {"transformer-s", build_study_transformer, 24, 2048, kDerived, 48,
     "Transformer-S of the TensorOpt study, 4.8 GiB in fp32: 24 decoder layers of 2048, MLP 8192, 32 heads, 16384 "
     "words, 48 tokens"},
    {"vgg16", build_vgg, 16, 4096, 64, 0,
     "VGG-16, also of the TensorOpt study (0.52 GiB in fp32), images of 224 x 224"},
    {"vgg11", build_vgg, 11, 4096, 64, 0, "VGG-11, images of 224 x 224"},
    {"vgg13", build_vgg, 13, 4096, 64, 0, "VGG-13, images of 224 x 224"},
    {"vgg19", build_vgg, 19, 4096, 64, 0, "VGG-19, images of 224 x 224"},
    {"lenet", build_lenet, 0, 120, 0, 0, "LeNet-5, images of 32 x 32"},
    {"alexnet", build_alexnet, 0, 4096, 0, 0, "AlexNet in its one-tower form, images of 224 x 224"},
    {"resnet18", build_resnet, 18, 0, 64, 0, "ResNet-18, images of 224 x 224"},
    {"resnet34", build_resnet, 34, 0, 64, 0, "ResNet-34, images of 224 x 224"},
    {"resnet50", build_resnet, 50, 0, 64, 0,
     "ResNet-50, images of 224 x 224; layers 18 to 152, width is that of the first bottleneck"},
    {"inception-v3", build_inception_v3, 0, 0, 0, 0, "Inception v3 without auxiliary classifier, images of 299 x 299"},
    {"nasnet-large", build_nasnet, 18, 0, 168, 0,
     "NASNet-A large (6 @ 4032): 18 normal cells, the first of 168 filters, images of 331 x 331"},
    {"pnasnet-large", build_pnasnet, 12, 0, 216, 0,
     "PNASNet-5 large: 12 cells, the first of 216 filters, images of 331 x 331"},
    {"bert-large", build_bert_large, 24, 1024, kDerived, 512,
     "BERT-large with pooler, tokens predicted through the token table"},
    {"gpt2", build_gpt2, 12, 768, kDerived, 1024, "GPT-2 (124 M)"},
    {"llama-2-7b", build_llama2, 32, 4096, kDerived, 2048, "Llama 2 7B"},
    {"llama-2-70b", build_llama2_70b, 80, 8192, kDerived, 2048, "Llama 2 70B, 8 key-value heads"},
    {"mixtral-8x7b", build_mixtral, 32, 4096, 14336, 2048,
     "Mixtral 8x7B: 46.7 B parameters, 12.9 B active; 8 experts, 2 for each token; width is an expert's"},
    {"lstm-lm", build_lstm_lm, 2, 1500, 0, 35, "LSTM language model: 2 layers of 1500 units, 10000 words, 35 steps"},
    {"ncf", build_ncf, 3, 64, 256, 0,
     "Neural collaborative filtering as in MLPerf: 138493 users, 26744 items, 64 factors, MLP 256-256-128-64"},
    {"gnmt", build_gnmt, 4, 1024, 0, 50,
     "GNMT as in MLPerf: 4 + 4 LSTM layers of 1024, the first in both directions, additive attention, 32320 words"},
    {"transformer-big", build_transformer_big, 6, 1024, kDerived, 256,
     "Transformer-big for translation as in MLPerf, 0.21 B parameters: 6 + 6 layers of 1024, MLP 4096, 16 heads, 33708 "
     "words"},
    {"nmt-2", build_nmt, 2, 1024, 0, 50,
     "NMT of the Trinity study, sizes ours: 2 + 2 LSTM layers of 1024, additive attention, 32000 words"},
    {"word-rnn", build_word_rnn, 10, 2048, 0, 28,
     "Word-RNN of the ParDNN study, 0.44 B parameters: 10 LSTM layers of 2048, 28 steps; 25670 words (Tiny "
     "Shakespeare)"},
    {"word-rnn-2", build_word_rnn, 8, 4096, 0, 25,
     "Word-RNN-2 of the ParDNN study, 1.28 B parameters: 8 LSTM layers of 4096, 25 steps; 25670 words"},
    {"char-crn", build_char_crn, 8, 1824, 0, 35,
     "Char-CRN of the ParDNN study, 0.23 B parameters: character convolutions, 8 LSTM layers of 1824 (the 2048 it "
     "prints make 0.29 B), 10000 words (PTB)"},
    {"char-crn-2", build_char_crn, 32, 2048, 0, 35,
     "Char-CRN-2 of the ParDNN study, 1.09 B parameters: character convolutions, 32 LSTM layers of 2048, 10000 words"},
    {"wrn", build_wrn, 101, 0, 14, 0,
     "WRN of the ParDNN study, 1.91 B parameters: 610 convolutions, 101 units a stage, widening factor 14 (width), "
     "images of 32 x 32 (CIFAR-100)"},
    {"wrn-2", build_wrn, 50, 0, 28, 0,
     "WRN-2 of the ParDNN study, 3.77 B parameters: 304 convolutions, 50 units a stage, widening factor 28"},
    {"trn", build_trn, 24, 2048, 5120, 100,
     "TRN of the ParDNN study, 1.97 B parameters: 24 encoder and 24 decoder layers of 2048, MLP 5120, 32000 words "
     "(IWSLT)"},
    {"trn-2", build_trn, 48, 2048, 8192, 100,
     "TRN-2 of the ParDNN study, 5.1 B parameters: 48 encoder and 48 decoder layers of 2048, MLP 8192, 32000 words"},
    {"e3d", build_e3d, 11, 320, 0, 19,
     "E3D of the ParDNN study, 0.95 B parameters: Eidetic 3D LSTM of 320 channels, kernels of 2 x 5 x 5; 11 cells, "
     "which it does not print, come nearest (Moving MNIST)"},
    {"e3d-2", build_e3d, 11, 512, 0, 19,
     "E3D-2 of the ParDNN study, 2.4 B parameters: Eidetic 3D LSTM of 512 channels, 11 cells"},
};

std::int64_t default_of(const Entry& entry, std::string_view key) {
  if (key == "layers") return entry.layers;
  if (key == "hidden") return entry.hidden;
  if (key == "width") return entry.width;
  if (key == "sequence") return entry.sequence;
  return kDefaultBatch;  // batch
}

std::vector<std::string> accepted(const Entry& entry) {
  std::vector<std::string> keys;
  for (const auto& parameter : kParameters)
    if (default_of(entry, parameter.key) != 0) keys.push_back(parameter.key);
  return keys;
}

class BuiltinSource final : public ModelSource, public HiddenSize {
 public:
  BuiltinSource(const Entry& entry, NetworkParameters parameters) : entry_(entry), parameters_(std::move(parameters)) {}
  std::string name() const override { return parameters_.name; }
  std::string source() const override { return parameters_.source; }
  std::int64_t chosen_batch() const override { return parameters_.batch; }
  std::int64_t hidden() const override { return entry_.hidden != 0 ? parameters_.hidden : 0; }
  std::string with_hidden(std::int64_t channels) const override {
    const auto question = parameters_.source.find('?');
    std::string others;
    if (question != std::string::npos)
      for (const auto assignment : split(std::string_view(parameters_.source).substr(question + 1), '&'))
        if (!assignment.starts_with("hidden=")) others += fmt::format("&{}", assignment);
    return fmt::format("{}?hidden={}{}", parameters_.source.substr(0, question), channels, others);
  }
  StatedDefaults stated() const override {
    StatedDefaults stated;
    if (parameters_.batch > 0) stated.batch_reason = "the model's name says so";
    if (parameters_.sequence != default_of(entry_, "sequence")) stated.sequence_reason = "the model's name says so";
    return stated;
  }
  Expected<ModelPtr> bind(const ModelBinding& binding) const override {
    NetworkParameters p = parameters_;
    if (binding.batch) p.batch = binding.batch;
    if (p.batch == 0) p.batch = kDefaultBatch;
    if (binding.sequence) p.sequence = binding.sequence;
    for (const auto& parameter : kParameters) {
      const std::int64_t value = p.*parameter.field;
      if (default_of(entry_, parameter.key) != 0 && value != 0 && (value < 1 || value > parameter.maximum))
        return usage_error(fmt::format("{} must be between 1 and {}, not {}", parameter.key, parameter.maximum, value),
                           p.source);
    }
    return entry_.build(p);
  }

 private:
  const Entry& entry_;
  NetworkParameters parameters_;
};

Error unknown_model(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& entry : kEntries) names.push_back(entry.name);
  Error error = usage_error(fmt::format("unknown built-in model '{}'", name));
  const std::string close = closest_match(name, names);
  error.hint = close.empty() ? "'turnpoint-cli models' lists them" : "did you mean 'builtin:" + close + "'?";
  return error;
}

Expected<void> read_parameter(const Entry& entry, std::string_view assignment, const std::string& source,
                              NetworkParameters& parameters) {
  const auto equals = assignment.find('=');
  const std::string key(assignment.substr(0, equals));
  const auto keys = accepted(entry);
  if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
    std::string list;
    for (const auto& k : keys) list += (list.empty() ? "" : ", ") + k;
    Error error = usage_error(fmt::format("unknown parameter '{}'; {} accepts {}", key, entry.name, list), source);
    const std::string close = closest_match(key, keys);
    if (!close.empty()) error.hint = "did you mean '" + close + "'?";
    return error;
  }
  const auto& parameter =
      *std::find_if(std::begin(kParameters), std::end(kParameters), [&](const auto& p) { return key == p.key; });
  const std::string_view text = equals == std::string_view::npos ? std::string_view() : assignment.substr(equals + 1);
  const auto value = parse_int(text);
  if (!value || *value < 1 || *value > parameter.maximum)
    return usage_error(
        fmt::format("parameter {} must be a whole number between 1 and {}, not '{}'", key, parameter.maximum, text),
        source);
  parameters.*parameter.field = *value;
  return {};
}

}  // namespace

const std::vector<BuiltinModel>& builtin_models() {
  static const std::vector<BuiltinModel> models = [] {
    std::vector<BuiltinModel> list;
    for (const auto& entry : kEntries) {
      std::string parameters;
      for (const auto& key : accepted(entry)) {
        const std::int64_t value = default_of(entry, key);
        if (!parameters.empty()) parameters += ' ';
        parameters += value == kDerived ? key : fmt::format("{}={}", key, value);
      }
      list.push_back({entry.name, entry.description, parameters});
    }
    return list;
  }();
  return models;
}

Expected<ModelSourcePtr> open_builtin(const std::string& specification_after_colon) {
  const auto question = specification_after_colon.find('?');
  const std::string name = specification_after_colon.substr(0, question);
  const auto entry =
      std::find_if(std::begin(kEntries), std::end(kEntries), [&](const Entry& e) { return name == e.name; });
  if (entry == std::end(kEntries)) return unknown_model(name);
  NetworkParameters parameters;
  parameters.name = name;
  parameters.source = "builtin:" + specification_after_colon;
  for (const auto& parameter : kParameters)
    parameters.*parameter.field = std::max<std::int64_t>(0, default_of(*entry, parameter.key));
  parameters.batch = 0;
  if (question != std::string::npos) {
    std::vector<std::string_view> given;
    for (const auto assignment : split(std::string_view(specification_after_colon).substr(question + 1), '&')) {
      const auto key = assignment.substr(0, assignment.find('='));
      if (std::find(given.begin(), given.end(), key) != given.end())
        return usage_error(fmt::format("parameter '{}' is there twice", key), parameters.source);
      given.push_back(key);
      if (auto read = read_parameter(*entry, assignment, parameters.source, parameters); !read) return read.error();
    }
  }
  return ModelSourcePtr(std::make_shared<BuiltinSource>(*entry, std::move(parameters)));
}

}  // namespace turnpoint
