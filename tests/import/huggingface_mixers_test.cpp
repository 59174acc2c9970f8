// SPDX-License-Identifier: Apache-2.0
// Layers that neither attend nor scan as others do: RWKV's averages, FNet's transforms, Zamba's shared block, the global
// token of Longformer. Parameters are those that the transformers library (5.23) counts for the same config on its
// meta device; sizes were drawn by chance.
#include <QTest>
#include <algorithm>
#include <set>

#include "core/import/huggingface/huggingface.h"
#include "core/import/source/model_source.h"

using namespace turnpoint;

namespace {

Expected<ModelPtr> opened(const std::string& text) {
  const auto source = parse_huggingface_config("{" + text + "}", "c.json");
  if (!source) return source.error();
  return (*source)->bind({2, 32});
}

constexpr const char* kRwkv = R"("model_type": "rwkv", "architectures": ["RwkvForCausalLM"], "hidden_size": 64,
  "attention_hidden_size": 96, "intermediate_size": 160, "num_hidden_layers": 3, "vocab_size": 99)";
constexpr const char* kZamba = R"("model_type": "zamba", "architectures": ["ZambaForCausalLM"], "hidden_size": 64,
  "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 96, "vocab_size": 99,
  "mamba_dt_rank": 8, "n_mamba_heads": 2,
  "layers_block_type": ["mamba", "mamba", "hybrid", "mamba", "hybrid", "mamba"])";
constexpr const char* kZamba2 = R"("model_type": "zamba2", "architectures": ["Zamba2ForCausalLM"], "hidden_size": 64,
  "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 96, "vocab_size": 99,
  "n_mamba_heads": 8, "mamba_d_state": 16, "num_mem_blocks": 2, "adapter_rank": 8, "use_shared_attention_adapter": true,
  "hybrid_layer_ids": [1, 3, 5])";
constexpr const char* kLongformer = R"("model_type": "longformer", "architectures": ["LongformerForMaskedLM"],
  "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 99,
  "max_position_embeddings": 130, "attention_window": [16, 16])";
constexpr const char* kLed = R"("model_type": "led", "architectures": ["LEDForConditionalGeneration"], "d_model": 64,
  "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
  "encoder_ffn_dim": 96, "decoder_ffn_dim": 80, "vocab_size": 99, "max_encoder_position_embeddings": 256,
  "max_decoder_position_embeddings": 64, "attention_window": [16, 16])";
constexpr const char* kFNet = R"("model_type": "fnet", "architectures": ["FNetForMaskedLM"], "hidden_size": 64,
  "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 99, "max_position_embeddings": 128)";
const std::string kT5Gemma = [](const char* encoder_heads) {
  const auto part = [](const char* layers, const char* heads) {
    return std::string(R"({"hidden_size": 64, "num_hidden_layers": )") + layers + R"(, "num_attention_heads": )" + heads +
           R"(, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "vocab_size": 99})";
  };
  return R"("model_type": "t5gemma", "architectures": ["T5GemmaForConditionalGeneration"], "vocab_size": 99, "encoder": )" +
         part("2", encoder_heads) + R"(, "decoder": )" + part("3", "4");
}("4");

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  return at == text.npos ? "not found: " + from : text.replace(at, from.size(), to);
}

const Operator* find(const Model& model, const std::string& name) {
  for (const auto& op : model.operators)
    if (op.name == name) return &op;
  return nullptr;
}

}  // namespace

class HuggingfaceMixersTest : public QObject {
  Q_OBJECT

 private slots:
  void parameters_are_those_of_the_library_data() {
    QTest::addColumn<QString>("config");
    QTest::addColumn<qint64>("parameters");
    QTest::newRow("rwkv") << QString(kRwkv) << qint64(162688);
    QTest::newRow("zamba") << QString(kZamba) << qint64(292928);
    QTest::newRow("zamba by periods") << QString::fromStdString(with(kZamba, R"("layers_block_type": ["mamba", "mamba", "hybrid", "mamba", "hybrid", "mamba"])",
        R"("attn_layer_period": 3, "attn_layer_offset": 1)")) << qint64(292928);
    QTest::newRow("zamba2") << QString(kZamba2) << qint64(364112);
    QTest::newRow("longformer") << QString(kLongformer) << qint64(102947);
    QTest::newRow("led") << QString(kLed) << qint64(242864);
    QTest::newRow("fnet") << QString(kFNet) << qint64(53027);
    QTest::newRow("t5gemma") << QString::fromStdString(kT5Gemma) << qint64(204928);
  }
  void parameters_are_those_of_the_library() {
    QFETCH(QString, config);
    QFETCH(qint64, parameters);
    const auto model = opened(config.toStdString());
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    QCOMPARE((*model)->parameters, parameters);
  }

  // The position before is read, so that a device without it could not go on; channels are independent.
  void an_average_is_split_by_channels_and_not_by_positions() {
    const auto model = opened(kRwkv);
    QVERIFY(model.has_value());
    for (const char* name : {"layer0/mixer/scan", "layer0/mixer/k_shared"}) {
      const auto* op = find(**model, name);
      QVERIFY2(op, name);
      for (const auto& loop : op->dims) {
        if (loop.name == DimName::sequence) QVERIFY(!loop.splittable);
        if (loop.name == DimName::channel || loop.name == DimName::batch) QVERIFY(loop.splittable);
      }
    }
  }

  // Whatever carries a state from each position to the next must see all positions; samples know nothing of each other.
  void no_state_is_split_along_its_positions_data() {
    QTest::addColumn<QString>("config");
    QTest::newRow("selective scan") << R"("model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 1, "vocab_size": 99)";
    QTest::newRow("state space") << R"("model_type": "mamba2", "hidden_size": 64, "num_hidden_layers": 1, "vocab_size": 99,
      "num_heads": 4, "head_dim": 32, "state_size": 16, "n_groups": 2)";
    QTest::newRow("delta rule") << R"("model_type": "qwen3_5_text", "layer_types": ["linear_attention"], "hidden_size": 64,
      "num_hidden_layers": 1, "vocab_size": 99, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
      "intermediate_size": 96, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 24,
      "linear_value_head_dim": 16, "linear_conv_kernel_dim": 4)";
    QTest::newRow("matrix memory") << R"("model_type": "xlstm", "hidden_size": 64, "num_hidden_layers": 1, "vocab_size": 99,
      "num_heads": 4)";
    QTest::newRow("recurrence") << R"("model_type": "recurrent_gemma", "hidden_size": 64, "num_hidden_layers": 1,
      "vocab_size": 99, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96)";
    QTest::newRow("average") << QString(kRwkv);
  }
  void no_state_is_split_along_its_positions() {
    QFETCH(QString, config);
    const auto model = opened(config.toStdString());
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const auto* op = find(**model, "layer0/mixer/scan");
    QVERIFY(op);
    std::set<DimName> seen;
    for (const auto& loop : op->dims) {
      seen.insert(loop.name);
      if (loop.name == DimName::sequence || loop.name == DimName::time) QVERIFY(!loop.splittable);
      if (loop.name == DimName::batch) QVERIFY(loop.splittable);
    }
    QVERIFY(seen.count(DimName::sequence) && seen.count(DimName::batch));
  }

  // One position attends by weights of its own and takes the place of what it found otherwise: the same shape goes on.
  void a_global_token_attends_once_more() {
    const auto model = opened(kLongformer);
    QVERIFY(model.has_value());
    const auto* own = find(**model, "layer1/attention/global/scores");
    const auto* all = find(**model, "layer1/attention/scores");
    const auto* join = find(**model, "layer1/attention/global/join");
    QVERIFY(own && all && join);
    QCOMPARE(own->forward_macs * 32, all->forward_macs);
    QCOMPARE((*model)->tensors[join->outputs[0].tensor].shape, (std::vector<std::int64_t>{2, 4, 32, 16}));
    const auto pair = opened(kLed);
    QVERIFY(pair && find(**pair, "encoder/layer1/attention/global/q") && !find(**pair, "decoder/layer1/attention/global/q"));
  }

  // Two blocks in turn: the third layer with a block has the first one's weights, and small products of its own.
  void blocks_are_shared_in_turn() {
    const auto model = opened(kZamba2);
    QVERIFY(model.has_value());
    const auto weight = [&](const char* name) {
      const auto* op = find(**model, name);
      if (!op) return TensorId();
      const TensorId own = op->inputs[1].tensor, tied = (*model)->tensors[own].tied_to;
      return tied.valid() ? tied : own;
    };
    const auto first = weight("layer1/mixer/shared/gate");
    QVERIFY(first.valid());
    QCOMPARE((*model)->tensors[first].shape, (std::vector<std::int64_t>{64, 96}));
    QVERIFY(first != weight("layer3/mixer/shared/gate"));
    QVERIFY(first == weight("layer5/mixer/shared/gate"));
    QVERIFY(weight("layer1/mixer/shared/mlp_low") != weight("layer5/mixer/shared/mlp_low"));
    QVERIFY(find(**model, "layer1/mixer/shared/q_low"));
    const auto without = opened(with(kZamba2, "\"use_shared_attention_adapter\": true", "\"use_shared_attention_adapter\": false"));
    QVERIFY(without && !find(**without, "layer1/mixer/shared/q_low"));
  }

  void a_transform_keeps_positions_and_channels_together() {
    const auto model = opened(kFNet);
    const auto* op = model ? find(**model, "layer0/mixer/transform") : nullptr;
    QVERIFY(op);
    QCOMPARE((*model)->parameters - 2 * (2 * 64 * 96 + 64 + 96 + 4 * 64),
             (*opened(with(kFNet, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 4")))->parameters -
                 4 * (2 * 64 * 96 + 64 + 96 + 4 * 64));
    for (const auto& loop : op->dims) QCOMPARE(loop.splittable, loop.name == DimName::batch);
  }

  void what_the_graph_cannot_stand_for_is_refused_data() {
    QTest::addColumn<QString>("config");
    QTest::addColumn<QString>("words");
    const auto row = [](const char* name, const std::string& config, const char* words) {
      QTest::newRow(name) << QString::fromStdString(config) << QString(words);
    };
    row("widths", with(kT5Gemma, "\"hidden_size\": 64", "\"hidden_size\": 128"), "encoders of another width");
    row("heads", with(kT5Gemma, "\"num_attention_heads\": 4", "\"num_attention_heads\": 2"), "encoders with other heads");
    row("no blocks", with(kZamba2, "\"num_mem_blocks\": 2", "\"num_mem_blocks\": 0"), "a scan behind a shared block");
  }
  void what_the_graph_cannot_stand_for_is_refused() {
    QFETCH(QString, config);
    QFETCH(QString, words);
    const auto model = opened(config.toStdString());
    QVERIFY(!model.has_value());
    QVERIFY2(model.error().message().find(words.toStdString()) != std::string::npos, model.error().message().c_str());
  }
};

QTEST_APPLESS_MAIN(HuggingfaceMixersTest)
#include "huggingface_mixers_test.moc"
