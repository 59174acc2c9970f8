// SPDX-License-Identifier: Apache-2.0
#include <QTest>
#include <cmath>
#include <fstream>
#include <map>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/import/huggingface/families.h"
#include "core/import/huggingface/huggingface.h"
#include "core/import/source/model_source.h"
#include "processor_clock.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

/// {total_params, active_params} of every config in EXPECTED.csv; all are active where nothing else is said.
std::map<std::string, std::pair<std::int64_t, std::int64_t>> expected_parameters(const std::filesystem::path& folder) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> expected;
  std::ifstream in(folder / "EXPECTED.csv");
  for (std::string line; std::getline(in, line);) {
    const auto cells = split(line, ',');
    if (cells.size() < 3 || !cells[0].starts_with("hf_config/")) continue;
    auto& counts = expected[std::string(cells[0])];
    if (cells[1] == "total_params") counts.first = *parse_int(cells[2]);
    if (cells[1] == "active_params") counts.second = *parse_int(cells[2]);
  }
  for (auto& [file, counts] : expected)
    if (counts.second == 0) counts.second = counts.first;
  return expected;
}

const std::string kLlama =
    R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 160,
  "num_hidden_layers": 2, "vocab_size": 100, "max_position_embeddings": 4096})";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  Q_ASSERT(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

ModelPtr build(const std::string& text, ModelBinding binding = {}) {
  const auto source = parse_huggingface_config(text, "c.json");
  if (!source) {
    qWarning("%s", source.error().message().c_str());
    return nullptr;
  }
  const auto model = (*source)->bind(binding);
  if (!model) qWarning("%s", model.error().message().c_str());
  return model ? *model : nullptr;
}

const Operator* find(const Model& model, const std::string& name) {
  for (const auto& op : model.operators)
    if (op.name == name) return &op;
  return nullptr;
}

}  // namespace

class HuggingfaceTest : public QObject {
  Q_OBJECT

 private slots:
  void expected_counts() {
    REQUIRE_DATA(data);
    int checked = 0, mixtures = 0;
    for (const auto& [file, counts] : expected_parameters(data)) {
      const auto source = open_huggingface_config((data / file).string());
      QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
      const auto model = (*source)->bind({});
      QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
      QCOMPARE((*model)->parameters, counts.first);
      QCOMPARE((*model)->active_parameters, counts.second);
      ++checked;
      mixtures += counts.first != counts.second;
    }
    QCOMPARE(checked, 14);
    QCOMPARE(mixtures, 3);
  }

  // Foreign key layouts, one layer of each (12 of ALBERT): the counts follow from the files by hand.
  void variants_open() {
    REQUIRE_DATA(data);
    const std::map<std::string, std::int64_t> counts = {
        {"albert-base-v1", 11221680},  // AlbertForMaskedLM
        {"bloom", 250880 * 2048 + 2 * 2048 + 12 * 2048 * 2048 + 13 * 2048 + 2 * 2048},
        {"falcon-7b", 65024 * 4544 + 2 * 4544 * 4544 + 2 * 4544 * 284 + 8 * 4544 * 4544 + 4 * 4544},
        {"gptj", 2 * 50400 * 4096 + 50400 + 12 * 4096 * 4096 + 5 * 4096 + 4 * 4096},
        {"mpt", 50432 * 2048 + 12 * 2048 * 2048 + 3 * 2048},
        {"opt", (50272 + 2050) * 2048 + 12 * 2048 * 2048 + 13 * 2048 + 2 * 2048},
        {"t5", 32128 * 512 + 3 * 4 * 512 * 512 + 4 * 512 * 2048 + 7 * 512 + 2 * 32 * 8}};
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(data / "hf_config" / "variants")) {
      ++files;
      const auto source = open_huggingface_config(entry.path().string());
      QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
      const auto model = (*source)->bind({1, 0});
      QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
      QCOMPARE((*model)->parameters, counts.at(entry.path().stem().string()));
    }
    QCOMPARE(files, 7);
  }

  void family_defaults() {
    // An empty config is the family's base model, with its published count.
    QCOMPARE(build(R"({"model_type": "gpt2"})")->parameters, std::int64_t(124439808));
    QCOMPARE(build(R"({"model_type": "bert"})")->parameters, std::int64_t(109482240));  // bert-base-uncased
    QCOMPARE(build(R"({"model_type": "llama"})")->parameters, std::int64_t(6738415616));
    QCOMPARE(build(R"({"model_type": "mistral"})")->parameters, std::int64_t(7241732096));  // Mistral 7B v0.1
    QCOMPARE(build(R"({"architectures": ["GPT2LMHeadModel"]})")->parameters, std::int64_t(124439808));
  }

  // What the architecture puts on top counts, not what the family usually has there.
  void architectures_choose_the_head() {
    const std::string config =
        R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22, "vocab_size": 32000,
            "num_attention_heads": 32, "num_key_value_heads": 4, "id2label": {}, "architectures": ["ARCHITECTURE"]})";
    const auto tiny = [&](const std::string& architecture, const std::string& labels = "{}") {
      return build(with(with(config, "ARCHITECTURE", architecture), "{}", labels));
    };
    const std::int64_t whole = 1100048384, head = 32000 * 2048;  // TinyLlama 1.1B
    QCOMPARE(tiny("LlamaForCausalLM")->parameters, whole);
    QCOMPARE(tiny("LlamaModel")->parameters, whole - head);
    QVERIFY(tiny("LlamaModel")->warnings.size() == 1 && tiny("LlamaForCausalLM")->warnings.empty());
    QCOMPARE(tiny("LlamaForSequenceClassification")->parameters, whole - head + 2 * 2048);
    QCOMPARE(tiny("LlamaForSequenceClassification", R"({"0": "a", "1": "b", "2": "c"})")->parameters,
             whole - head + 3 * 2048);
    const auto classifier = tiny("LlamaForSequenceClassification"), bare = tiny("LlamaModel");
    QVERIFY(classifier->operators.size() == bare->operators.size() + 1);  // the last token is taken out
    QCOMPARE(build(R"({"model_type": "stablelm"})")->parameters, std::int64_t(2795443200));  // StableLM 3B 4E1T
    QCOMPARE(build(R"({"model_type": "stablelm", "use_qkv_bias": true})")->parameters,
             std::int64_t(2795443200 + 32 * 3 * 2560));
  }

  void key_variants_agree() {
    const auto a = build(
        R"({"model_type": "gpt2", "n_embd": 128, "n_layer": 3, "n_head": 4, "n_inner": null, "n_positions": 64, "vocab_size": 99})");
    const auto b = build(
        R"({"model_type": "gpt2", "hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 512,
                            "n_ctx": 64, "vocab_size": 99.0})");
    QVERIFY(a && b);
    QCOMPARE(a->parameters, b->parameters);
    QCOMPARE(a->operators.size(), b->operators.size());
    QCOMPARE(a->parameters, std::int64_t(99 * 128 + 64 * 128 + 3 * (12 * 128 * 128 + 13 * 128) + 2 * 128));
    QCOMPARE(a->sequence, std::int64_t(64));
  }

  void switches_change_the_count() {
    const std::int64_t h = 64, kv = 16, base = build(kLlama)->parameters;
    QCOMPARE(base, 2 * 100 * h + h + 2 * (2 * h * h + 2 * h * kv + 3 * h * 160 + 2 * h));
    QCOMPARE(build(with(kLlama, "{", "{\"tie_word_embeddings\": true, "))->parameters, base - 100 * h);
    QCOMPARE(build(with(kLlama, "{", "{\"attention_bias\": true, "))->parameters, base + 2 * (2 * h + 2 * kv));
    QCOMPARE(build(with(kLlama, "{", "{\"mlp_bias\": true, "))->parameters, base + 2 * (2 * 160 + h));
    QCOMPARE(build(with(kLlama, "{", "{\"head_dim\": 16, "))->parameters, base + 2 * (2 * h * h + 2 * h * kv));
  }

  // Heads are their own dimension, shared by queries, keys and values, and can be split; the key sequence cannot.
  void attention_is_splittable_by_heads() {
    const auto model = build(kLlama, {4, 32});
    for (const char* leaf : {"q", "k", "v", "scores", "softmax", "context", "out"}) {
      const Operator* op = find(*model, std::string("layer1/attention/") + leaf);
      QVERIFY2(op, leaf);
      QCOMPARE(op->scope, std::string("layer1/attention"));
      const auto head =
          std::find_if(op->dims.begin(), op->dims.end(), [](const auto& d) { return d.name == DimName::head; });
      QVERIFY2(head != op->dims.end(), leaf);
      QCOMPARE(head->size, std::int64_t(2));
      QVERIFY(head->splittable);
      for (const auto& dim : op->dims)
        if (dim.name == DimName::key_sequence || dim.name == DimName::head_channel) QVERIFY(!dim.splittable);
    }
    const auto& q = model->tensors[find(*model, "layer1/attention/q")->outputs[0].tensor];
    QCOMPARE(q.shape, (std::vector<std::int64_t>{4, 2, 4, 32, 8}));
    QCOMPARE(q.dims, (std::vector<DimName>{DimName::batch, DimName::head, DimName::group, DimName::sequence,
                                           DimName::head_channel}));
    const auto& k = model->tensors[find(*model, "layer1/attention/k")->outputs[0].tensor];
    QCOMPARE(k.shape, (std::vector<std::int64_t>{4, 2, 32, 8}));
    const Operator* scores = find(*model, "layer1/attention/scores");
    QVERIFY(std::any_of(scores->dims.begin(), scores->dims.end(),
                        [](const auto& d) { return d.name == DimName::key_sequence; }));
    // The output projection sums over the heads.
    const Operator* out = find(*model, "layer1/attention/out");
    for (const auto& dim : out->dims)
      if (dim.name == DimName::head) QCOMPARE(dim.role, DimRole::reduction);
    // 15 operators a layer.
    const auto layers = std::count_if(model->operators.begin(), model->operators.end(),
                                      [](const auto& op) { return op.scope.starts_with("layer1/"); });
    QCOMPARE(layers, 15);
  }

  void one_key_head_leaves_the_query_heads() {
    const auto model = build(with(kLlama, "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 1"), {4, 32});
    QVERIFY(model);
    QCOMPARE(model->tensors[find(*model, "layer0/attention/q")->outputs[0].tensor].shape,
             (std::vector<std::int64_t>{4, 8, 32, 8}));
    QCOMPARE(model->tensors[find(*model, "layer0/attention/k")->outputs[0].tensor].shape,
             (std::vector<std::int64_t>{4, 32, 8}));
  }

  void macs_follow_the_closed_formula() {
    const double b = 3, s = 32, h = 64, kv = 16;
    const double forward = b * s * (2 * (2 * h * h + 2 * h * kv + 3 * h * 160 + 2 * s * h) + h * 100);
    const auto summary = summarise(*build(kLlama, {3, 32}));
    QCOMPARE(summary.macs_forward, forward);
    QCOMPARE(summary.macs_backward, 2 * forward);
  }

  // Softmax, both MLP factors, norms' inputs and everything the projections read: 2-byte errors here move memory plans.
  void kept_tensors_follow_the_closed_formula() {
    const std::int64_t b = 4, s = 32, h = 64, kv = 16, m = 160, heads = 8, vocabulary = 100, layers = 2;
    const auto model = build(kLlama, {b, s});
    // Per layer: x and norm(x), q, k, v, softmax, context, x' and norm(x'), gate, up and their product.
    const std::int64_t layer = 2 * h + h + 2 * kv + heads * s + h + 2 * h + 3 * m;
    const std::int64_t head = 2 * h + vocabulary;
    const std::int64_t expected = 4 * b * s * (layers * layer + head);
    const std::int64_t actual = summarise(*model).activation_bytes;
    // Integer tokens and labels and the row statistics of norms may be counted on top.
    QVERIFY2(actual >= expected && actual <= expected + b * s * (2 * 8 + 4 * (2 * 2 * layers + 2)),
             qPrintable(QString("%1 %2").arg(actual).arg(expected)));
  }

  void sequence_defaults_and_limits() {
    QCOMPARE(build(kLlama)->sequence, std::int64_t(4096));
    QCOMPARE(build(kLlama)->batch, std::int64_t(256));
    QCOMPARE(build(R"({"model_type": "gpt2"})")->sequence, std::int64_t(1024));
    const auto longer = build(kLlama, {1, 5000});
    QCOMPARE(longer->warnings.size(), std::size_t(1));
    const auto gpt2 = parse_huggingface_config(R"({"model_type": "gpt2"})", "c.json");
    QCOMPARE((*gpt2)->bind({1, 1025}).error().code, ErrorCode::usage);
    QCOMPARE((*gpt2)->bind({-1, 0}).error().code, ErrorCode::usage);
    QCOMPARE((*gpt2)->bind({std::int64_t(1) << 62, 0}).error().code, ErrorCode::usage);
    QCOMPARE((*gpt2)->name(), std::string("c"));
    QCOMPARE((*parse_huggingface_config(kLlama, "/models/tiny/config.json"))->name(), std::string("tiny"));
  }

  void broken_configs_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("message");
    const auto row = [](const char* name, const std::string& text, const char* message) {
      QTest::newRow(name) << QString::fromStdString(text) << message;
    };
    row("not json", "model_type: llama", "c.json: line 1: not valid JSON");
    row("cut off", kLlama.substr(0, 80), "not valid JSON");
    row("empty", "", "not valid JSON");
    row("list", "[]", "c.json: must be an object, not a list");
    row("nested", std::string(100000, '['), "c.json: nested deeper than 64 levels");
    row("no family", "{}", "c.json: model_type: neither model_type nor architectures says which family this is");
    row("unknown family", R"({"model_type": "perceiver"})",
        "c.json: model_type: unknown family 'perceiver'; the nearest is 'llama'");
    row("unknown architecture", R"({"architectures": ["Qwen2VLForConditionalGeneration"]})",
        "c.json: architectures: unknown family 'Qwen2VLForConditionalGeneration'");
    row("family is a number", R"({"model_type": 3})", "c.json: model_type: must be a string, not a whole number");
    row("zero heads", with(kLlama, "\"num_attention_heads\": 8", "\"num_attention_heads\": 0"),
        "c.json: num_attention_heads: must be between 1 and 65536, not 0");
    row("uneven heads", with(kLlama, "\"hidden_size\": 64", "\"hidden_size\": 100"),
        "c.json: num_attention_heads: 8 heads do not divide the hidden size 100");
    row("uneven key heads", with(kLlama, "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"),
        "c.json: num_key_value_heads: 3 does not divide the 8 attention heads");
    row("more key heads", with(kLlama, "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 16"),
        "num_key_value_heads: 16 does not divide");
    row("a billion layers", with(kLlama, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1000000000"),
        "c.json: num_hidden_layers: must be between 1 and 4096, not 1000000000");
    row("negative", with(kLlama, "\"vocab_size\": 100", "\"vocab_size\": -100"),
        "c.json: vocab_size: must be between 1 and");
    row("string", with(kLlama, "\"vocab_size\": 100", "\"vocab_size\": \"100\""),
        "c.json: vocab_size: must be a whole number, not a string");
    row("fraction", with(kLlama, "\"vocab_size\": 100", "\"vocab_size\": 100.5"),
        "c.json: vocab_size: must be a whole number, not a number with a fraction");
    row("list for a number", with(kLlama, "\"vocab_size\": 100", "\"vocab_size\": [100]"),
        "vocab_size: must be a whole number, not a list");
    row("nan", with(kLlama, "\"vocab_size\": 100", "\"vocab_size\": NaN"),
        "c.json: vocab_size: must be a finite number, not NaN");
    row("huge", with(kLlama, "\"vocab_size\": 100", "\"vocab_size\": 1e300"), "vocab_size: must be between 1 and");
    row("beyond 64 bits", with(kLlama, "\"vocab_size\": 100", "\"vocab_size\": 18446744073709551615"),
        "vocab_size: must be between 1 and");
    row("flag", with(kLlama, "{", "{\"tie_word_embeddings\": \"yes\", "),
        "tie_word_embeddings: must be true or false, not a string");
    row("relative positions", R"({"model_type": "bert", "position_embedding_type": "relative_key"})",
        "position_embedding_type: only 'absolute' is supported");
  }
  void broken_configs() {
    QFETCH(QString, text);
    QFETCH(QString, message);
    const turnpoint::test::ProcessorClock timer;
    const auto source = parse_huggingface_config(text.toStdString(), "c.json");
    QVERIFY(!source.has_value());
    QCOMPARE(source.error().code, ErrorCode::bad_input);
    QVERIFY2(source.error().message().find(message.toStdString()) != std::string::npos,
             source.error().message().c_str());
    QVERIFY(timer.elapsed() < 1000);
  }

  void missing_files() {
    QCOMPARE(open_huggingface_config("/nonexistent/config.json").error().message(),
             std::string("/nonexistent/config.json: no such file"));
    QCOMPARE(open_huggingface_config("/").error().code, ErrorCode::bad_input);
  }
};

QTEST_APPLESS_MAIN(HuggingfaceTest)
#include "huggingface_test.moc"
