// SPDX-License-Identifier: Apache-2.0
// A loss over a vocabulary as two operators: what becomes of the graph and of its work, and where it is left alone.
#include "core/model/split_loss.h"

#include <QTest>
#include <algorithm>

#include "core/hardware/cluster.h"
#include "core/import/huggingface/huggingface.h"
#include "core/import/source/model_source.h"
#include "core/model/model_json.h"
#include "core/scenario/scenario.h"

using namespace turnpoint;

namespace {

ModelPtr decoder(int words) {
  const auto source = parse_huggingface_config(
      R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "intermediate_size": 128,
          "num_hidden_layers": 2, "max_position_embeddings": 32, "vocab_size": )" +
          std::to_string(words) + "}",
      "c.json");
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto model = (*source)->bind({4, 16});
  if (!model) qFatal("%s", model.error().message().c_str());
  return *model;
}

const Operator* find(const Model& model, OperatorKind kind) {
  for (const Operator& op : model.operators)
    if (op.kind == kind) return &op;
  return nullptr;
}

}  // namespace

class SplitLossTest : public QObject {
  Q_OBJECT

 private slots:
  void the_words_lie_in_blocks() {
    for (const auto& [words, blocks] : {std::pair{96, 32}, {128, 64}, {6400, 64}, {30522, 2}}) {
      const ModelPtr whole = decoder(words), made = split_loss(whole);
      QCOMPARE(made->operators.size(), whole->operators.size() + 1);
      const Operator *statistics = find(*made, OperatorKind::loss_statistics),
                     *loss = find(*made, OperatorKind::cross_entropy),
                     *before = find(*whole, OperatorKind::cross_entropy);
      QVERIFY(statistics && loss && reads_statistics(*loss) && !reads_statistics(*before) &&
              !reads_statistics(*statistics));
      QCOMPARE(statistics->name, loss->name + "_statistics");
      QCOMPARE(statistics->scope, loss->scope);
      const TensorId between = statistics->outputs.front().tensor;
      QCOMPARE(loss->inputs.front().tensor, between);
      QCOMPARE(made->tensors[between].shape, (std::vector<std::int64_t>{4, 16, blocks, kLossNumbers}));
      QVERIFY(made->tensors[between].requires_gradient);
      QCOMPARE(made->operators[made->tensors[between].producer].name, statistics->name);
      QCOMPARE(statistics->inputs.size(), std::size_t(2));
      QVERIFY(statistics->inputs[0].saved && statistics->inputs[1].saved && loss->inputs[0].saved);
      // Blocks may be split, what lies within may not; the loss knows no words.
      const auto& walked = statistics->inputs.front().walks.back();
      QCOMPARE(walked.size(), std::size_t(2));
      QCOMPARE(statistics->dims[walked[0]].size, std::int64_t(blocks));
      QCOMPARE(statistics->dims[walked[0]].size * statistics->dims[walked[1]].size, std::int64_t(words));
      QVERIFY(statistics->dims[walked[0]].splittable && !statistics->dims[walked[1]].splittable);
      QCOMPARE(statistics->dims[walked[0]].role, DimRole::parallel);
      QVERIFY(std::none_of(loss->dims.begin(), loss->dims.end(),
                           [](const LoopDimension& dim) { return dim.name == DimName::vocabulary; }));
      QVERIFY(std::all_of(loss->dims.begin(), loss->dims.end(),
                          [](const LoopDimension& dim) { return dim.role == DimRole::reduction; }));
      QCOMPARE(loss->inputs.front().walks.size(), std::size_t(4));
      QCOMPARE(statistics->forward_flop, before->forward_flop);
      QCOMPARE(statistics->backward_flop, before->backward_flop);
      QCOMPARE(split_loss(made).get(), made.get());
    }
  }

  void others_are_left_alone() {
    const ModelPtr odd = decoder(97);
    QCOMPARE(split_loss(odd).get(), odd.get());
    for (const char* name : {"builtin:lenet", "builtin:resnet18", "builtin:gpt2"}) {  // 50257 words are odd
      const auto source = open_model(name);
      QVERIFY(source.has_value());
      const ModelPtr model = *(*source)->bind({8, 0});
      QCOMPARE(split_loss(model).get(), model.get());
    }
  }

  void files_hold_it() {
    const ModelPtr made = split_loss(decoder(96));
    const nlohmann::json written = write_model(*made);
    JsonFields fields(written, "model");
    const ModelPtr read = read_model(fields);
    QVERIFY2(read != nullptr, fields.error() ? fields.error()->message().c_str() : "");
    QCOMPARE(write_model(*read).dump(), written.dump());
  }

  void a_scenario_has_it_unless_told() {
    const ClusterPtr cluster = *cluster_preset("h100-80gb-1x4");
    const ModelPtr model = decoder(96);
    const auto computed = [&](auto change) {
      Settings settings;
      settings.batch = 4;
      change(settings);
      return (*make_scenario(model, cluster, "h100-80gb-1x4", settings))->model;
    };
    QVERIFY(find(*computed([](Settings&) {}), OperatorKind::loss_statistics));
    QVERIFY(!find(*computed([](Settings& s) { s.split_loss = false; }), OperatorKind::loss_statistics));
    QVERIFY(!find(*computed([](Settings& s) { s.accounting = Accounting::paper; }), OperatorKind::loss_statistics));
    // Made once for all scenarios of a model, attention fused or not.
    const auto fused = [](Settings& s) { s.attention = Attention::fused; };
    QCOMPARE(computed(fused).get(), computed(fused).get());
    QVERIFY(find(*computed(fused), OperatorKind::attention));
  }
};

QTEST_APPLESS_MAIN(SplitLossTest)
#include "split_loss_test.moc"
