// SPDX-License-Identifier: Apache-2.0
// Attention as one operator: what becomes of the graph, of its work and of what it keeps, and where it is left alone.
#include "core/model/fuse_attention.h"

#include <QTest>
#include <cmath>

#include "core/import/huggingface/huggingface.h"
#include "core/model/builder.h"
#include "core/model/model_json.h"
#include "core/scenario/scenario.h"
#include "gpu_probe/step_models.h"

using namespace turnpoint;

namespace {

ModelPtr config(const std::string& text, std::int64_t batch, std::int64_t sequence) {
  const auto source = parse_huggingface_config(text, "c.json");
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto model = (*source)->bind({batch, sequence});
  if (!model) qFatal("%s", model.error().message().c_str());
  return *model;
}

int count(const Model& model, OperatorKind kind) {
  int found = 0;
  for (const Operator& op : model.operators) found += op.kind == kind;
  return found;
}

const Operator& first(const Model& model, OperatorKind kind) {
  for (const Operator& op : model.operators)
    if (op.kind == kind) return op;
  qFatal("no such operator");
}

const char* const kLlama =
    R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 96,
  "intermediate_size": 128, "num_hidden_layers": 3, "max_position_embeddings": 32})";

}  // namespace

class FuseAttentionTest : public QObject {
  Q_OBJECT

 private slots:
  void a_decoder() {
    for (const std::int64_t batch : {1, 4}) {
      const ModelPtr model = config(kLlama, batch, 16), fused = fuse_attention(model);
      QCOMPARE(count(*fused, OperatorKind::attention), 3);
      QCOMPARE(count(*fused, OperatorKind::softmax), 0);
      QCOMPARE(fused->operators.size(), model->operators.size() - 6);  // scores and softmax of each layer
      QCOMPARE(fused->parameters, model->parameters);
      const Operator& op = first(*fused, OperatorKind::attention);
      QCOMPARE(op.name, std::string("layer0/attention/context"));
      QCOMPARE(op.inputs.size(), std::size_t(3));
      // Two products of 16 x 16 x 8 for each of 8 heads, half of them beyond the causal mask; the scores once more.
      const double product = double(batch) * 8 * 16 * 16 * 8;
      QCOMPARE(op.forward_macs, product);
      QCOMPARE(op.backward_macs, 2.5 * product);
      // Queries, keys, values and the result are kept, and two numbers for each row of each head.
      for (const Access& access : op.inputs) QVERIFY(access.saved);
      QVERIFY(op.outputs[0].saved && op.outputs[1].saved);
      QCOMPARE(fused->tensors[op.outputs[1].tensor].elements(), batch * 8 * 16 * 2);
      // Batch, heads and queries may be split, keys and channels may not.
      for (const LoopDimension& dim : op.dims) {
        if (dim.size == 1) continue;
        const bool free = dim.name == DimName::batch || dim.name == DimName::head || dim.name == DimName::group ||
                          dim.name == DimName::sequence;
        QCOMPARE(dim.splittable, free);
      }
      for (std::size_t t = 0; t < fused->tensors.size(); ++t) {
        const Tensor& tensor = fused->tensors[TensorId(t)];
        if (!tensor.producer.valid()) continue;
        const auto& made = fused->operators[tensor.producer].outputs;
        QVERIFY(std::any_of(made.begin(), made.end(), [&](const Access& a) { return a.tensor == TensorId(t); }));
      }
    }
  }

  // An encoder sees both ways; its dropout becomes a part of the operator.
  void an_encoder_with_dropout() {
    const std::string text =
        R"({"model_type": "bert", "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 96, "intermediate_size": 64,
      "num_hidden_layers": 2, "max_position_embeddings": 32, "attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0})";
    const ModelPtr model = config(text, 2, 8), fused = fuse_attention(model);
    const auto dropouts = [](const Model& m) {
      return std::count_if(m.operators.begin(), m.operators.end(),
                           [](const Operator& op) { return op.detail == "Dropout"; });
    };
    QCOMPARE(dropouts(*model), 2);
    QCOMPARE(dropouts(*fused), 0);
    const Operator& op = first(*fused, OperatorKind::attention);
    QCOMPARE(op.forward_macs, 2.0 * (2 * 4 * 8 * 8 * 8));
    QCOMPARE(op.parts->operators.size(), std::size_t(4));
  }

  // Dropout of a config, by what it names: GPT-2 has it unless the file says otherwise.
  void dropout_of_configs() {
    const std::string head = R"({"model_type": "gpt2", "n_embd": 32, "n_head": 4, "n_layer": 2, "vocab_size": 96,
      "n_positions": 32)";
    const auto dropouts = [&](const std::string& rest) {
      const ModelPtr model = config(head + rest + "}", 2, 8);
      return std::count_if(model->operators.begin(), model->operators.end(),
                           [](const Operator& op) { return op.detail == "Dropout"; });
    };
    QCOMPARE(dropouts(""), 1 + 2 * 3);
    QCOMPARE(dropouts(R"(, "attn_pdrop": 0)"), 1 + 2 * 2);
    QCOMPARE(dropouts(R"(, "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.2)"), 1);
    QCOMPARE(dropouts(R"(, "attn_pdrop": 0, "resid_pdrop": 0, "embd_pdrop": 0)"), 0);
  }

  // Numbers that are trained and added to the scores, and probabilities that somebody else reads, want them written.
  void left_alone() {
    const ModelPtr t5 = test::open_attention(false);
    QVERIFY(fuse_attention(t5) == t5);
    const ModelPtr perceptron = test::mlp(8);
    QVERIFY(fuse_attention(perceptron) == perceptron);
    const ModelPtr fused = fuse_attention(config(kLlama, 2, 16));
    QVERIFY(fuse_attention(fused) == fused);
  }

  void settings_and_scenarios() {
    const ModelPtr model = config(kLlama, 4, 16);
    const auto is_fused = [&](const std::string& hardware, auto&& edit) {
      Settings settings;
      settings.batch = 4;
      edit(settings);
      const auto scenario = make_scenario(model, *cluster_preset(hardware), hardware, settings);
      return count(*(*scenario)->model, OperatorKind::attention) > 0;
    };
    const auto bf16 = [](Settings& s) { s.precision = Precision::bf16; };
    QVERIFY(is_fused("h100-80gb-1x8", bf16));
    QVERIFY(!is_fused("h100-80gb-1x8", [](Settings&) {}));
    QVERIFY(is_fused("h100-80gb-1x8", [](Settings& s) { s.attention = Attention::fused; }));
    QVERIFY(!is_fused("h100-80gb-1x8", [&](Settings& s) { bf16(s), s.attention = Attention::unfused; }));
    QVERIFY(!is_fused("h100-80gb-1x8", [&](Settings& s) { bf16(s), s.accounting = Accounting::paper; }));
    // The same model is fused once.
    Settings settings;
    settings.precision = Precision::bf16;
    const auto one = make_scenario(model, *cluster_preset("h100-80gb-1x8"), "h100-80gb-1x8", settings);
    settings.batch = 8;
    const auto other = make_scenario(model, *cluster_preset("a100-80gb-1x8"), "a100-80gb-1x8", settings);
    QVERIFY((*one)->model == (*other)->model);
  }

  void goes_to_another_process() {
    const ModelPtr fused = fuse_attention(test::block());
    const nlohmann::json written = write_model(*fused);
    JsonFields fields(written, "model");
    const ModelPtr read = read_model(fields);
    QVERIFY2(read != nullptr, fields.error() ? fields.error()->message().c_str() : "");
    QCOMPARE(write_model(*read).dump(), written.dump());
    for (const char* broken : {"part_loops", "parts"}) {
      nlohmann::json bad = written;
      for (auto& op : bad["operators"])
        if (op["kind"] == "attention") op[broken] = nlohmann::json::array();
      JsonFields where(bad, "model");
      QVERIFY(read_model(where) == nullptr);
    }
  }
};

QTEST_APPLESS_MAIN(FuseAttentionTest)
#include "fuse_attention_test.moc"
