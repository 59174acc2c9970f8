// SPDX-License-Identifier: Apache-2.0
// Plans in words layer by layer: typed splits come back in every layer; one layer that is split otherwise by hand has a
// line of its own; networks without layers, and paths without numbers.
#include "core/plan/layer_words.h"

#include <QtTest>
#include <set>

#include "core/plan/plan_difference.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

// Its vocabulary of 32,000 words divides by all degrees.
constexpr const char* kLlama4 = "llama-2-7b?layers=4&hidden=1024&sequence=32";
constexpr const char* kMixture = "mixtral-8x7b?layers=2&hidden=1024&width=256&sequence=32";

struct Case {
  ScenarioPtr scenario;
  Plan plan;

  const Model& model() const { return *scenario->model; }
  std::vector<LayerWords> lines() const { return words_by_layer(plan, model()); }

  /// The lines as "layer0 to layer3: ...".
  QStringList told() const {
    QStringList texts;
    for (const LayerWords& line : lines()) texts << QString::fromStdString(describe(line));
    return texts;
  }

  /// What is said of each part.
  std::map<std::string, std::string> by_part() const {
    std::map<std::string, std::string> words;
    for (const LayerWords& line : lines())
      for (const std::string& layer : line.layers) words[layer] = line.words;
    return words;
  }

  PlanOperator& op(const std::string& name) {
    for (PlanOperator& planned : plan.operators)
      if (model().operators[planned.op].name == name) return planned;
    qFatal("no %s", name.c_str());
  }

  /// All operators that `named` names and that have such a loop are split along it on every axis.
  int move(const std::function<bool(const std::string&)>& named, DimName name) {
    int moved = 0;
    for (PlanOperator& planned : plan.operators) {
      const Operator& what = model().operators[planned.op];
      for (std::size_t d = 0; d < what.dims.size(); ++d)
        if (what.dims[d].name == name && named(what.name)) {
          for (int a = 0; a < plan.mesh.count(); ++a) planned.split.axis[std::size_t(a)] = std::int8_t(d);
          ++moved;
          break;
        }
    }
    return moved;
  }
};

Case found(const std::string& method, const ModelPtr& model, const char* hardware, std::size_t point = 0) {
  const ScenarioPtr scenario = scenario_on(model, hardware);
  const auto result = run(method, scenario);
  if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
  return {(*result)->scenario, (*result)->plans->sharding(point)};
}

bool in_layer1(const std::string& name) { return name.starts_with("layer1/"); }

}  // namespace

class LayerWordsTest : public QObject {
  Q_OBJECT

 private slots:
  // Every layer says what was typed, and all layers the same; table and head are cut by vocabulary.
  void typed_splits_come_back_in_every_layer() {
    const ModelPtr llama = builtin(kLlama4, 32);
    int met = 0;
    for (const int tensor : {1, 2, 4, 8})
      for (const int zero : {0, 1, 3})
        for (const bool sequence : {false, true}) {
          if (sequence && tensor == 1) continue;
          const Case split =
              found(fmt::format("manual:tp={}:zero={}{}", tensor, zero, sequence ? ":sequence-parallel" : ""), llama,
                    "v100-16gb-1x8");
          const int data = 8 / tensor;
          std::vector<std::string> ways, table;
          if (data > 1) ways = table = {fmt::format("data parallel {}", data)};
          if (tensor > 1) {
            ways.push_back(fmt::format("tensor parallel {} (column, row{})", tensor, sequence ? ", sequence" : ""));
            table.push_back(fmt::format("vocabulary parallel {}", tensor));
          }
          const std::string sharded = zero > 0 && data > 1 ? fmt::format(", ZeRO-{}", zero) : "";
          const auto said = split.by_part();
          for (const char* layer : {"layer0", "layer1", "layer2", "layer3"})
            QCOMPARE(said.at(layer), fmt::format("{}{}", fmt::join(ways, " \u00d7 "), sharded));
          QCOMPARE(said.at("embed"), fmt::format("{}{}", fmt::join(table, " \u00d7 "), sharded));
          // The last norm is the head's.
          if (sequence) table.back() = fmt::format("tensor parallel {} (vocabulary, sequence)", tensor);
          QCOMPARE(said.at("head"), fmt::format("{}{}", fmt::join(table, " \u00d7 "), sharded));
          ++met;
        }
    QCOMPARE(met, 21);
  }

  void groups_of_context_and_experts_come_back() {
    const ModelPtr dense = builtin(kLlama4, 32), mixture = builtin(kMixture, 32);
    const auto layer = [](const Case& split) { return split.by_part().at("layer1"); };
    QCOMPARE(layer(found("manual:dp=2:tp=2:cp=2", dense, "v100-16gb-1x8")),
             std::string("data parallel 2 \u00d7 tensor parallel 2 (column, row) \u00d7 context parallel 2"));
    QCOMPARE(layer(found("manual:ep=8:zero=3", mixture, "v100-16gb-1x8")),
             std::string("data parallel 8, expert parallel 8, ZeRO-3"));
  }

  void other_methods_are_known_again() {
    const ModelPtr llama = builtin(kLlama4, 32);
    const Case sharded = found("fsdp", llama, "v100-16gb-1x8");
    for (const auto& [part, words] : sharded.by_part())
      if (part.starts_with("layer") || part == "embed") QCOMPARE(words, std::string("data parallel 8, ZeRO-3"));
    const ScenarioPtr scenario = scenario_on(llama, "v100-16gb-1x8");
    const auto megatron = run("megatron", scenario);
    QVERIFY(megatron.has_value());
    std::set<std::string> met;
    for (std::size_t i = 0; i < (*megatron)->points.size(); ++i) {
      const Plan plan = (*megatron)->plans->sharding(i);
      const Resemblance whole = resemblance_of(plan, *scenario->model);
      if (plan.pipeline || whole.tensor == 1) continue;
      const std::string tensor = fmt::format("tensor parallel {} (column, row", whole.tensor);
      for (const LayerWords& line : words_by_layer(plan, *scenario->model))
        if (line.layers.front().starts_with("layer"))
          QVERIFY2(line.words.find(tensor) != std::string::npos, (line.words + " lacks " + tensor).c_str());
      met.insert(tensor);
    }
    QVERIFY(!met.empty());
  }

  void checkpointing_and_stages() {
    const ModelPtr llama = builtin(kLlama4, 32);
    QCOMPARE(found("manual:recompute", llama, "v100-16gb-1x8").by_part().at("layer2"),
             std::string("data parallel 8, checkpointing"));
    const auto cores = found("manual:recompute=selective", llama, "v100-16gb-1x8").by_part();
    QCOMPARE(cores.at("layer2"), std::string("data parallel 8, checkpointing of the attention core"));
    // Nothing outside of the layers runs again.
    QCOMPARE(cores.at("embed"), std::string("data parallel 8"));
    QCOMPARE(found("manual:recompute", llama, "v100-16gb-1x8").by_part().at("embed"), std::string("data parallel 8"));
    // Of a pipeline a layer lies on the devices of its stage.
    QCOMPARE(found("manual:pp=2:tp=4:micro-batches=4", llama, "v100-16gb-1x8").by_part().at("layer3"),
             std::string("tensor parallel 4 (column, row)"));
  }

  // By hand: one layer's attention, then all its products, by channels in place of the batch.
  void one_layer_otherwise_has_a_line_of_its_own() {
    Case split = found("data-parallel", builtin(kLlama4, 32), "v100-16gb-1x8");
    const auto before = split.lines();
    QCOMPARE(before.size(), std::size_t(1));
    QVERIFY(before[0].layers.size() >= 5 && before[0].words == "data parallel 8");
    for (PlanOperator& op : split.plan.operators) {
      const Operator& what = split.model().operators[op.op];
      if (!in_layer1(what.name) || !sets_the_strategy(split.model(), what)) continue;
      for (std::size_t d = 0; d < what.dims.size(); ++d)
        if (what.kind == OperatorKind::matmul && what.dims[d].role == DimRole::reduction)
          op.split.axis.fill(-1), op.split.axis[0] = op.split.axis[1] = op.split.axis[2] = std::int8_t(d);
    }
    const auto after = split.lines();
    QCOMPARE(after.size(), std::size_t(3));
    QCOMPARE(after[1].layers, std::vector<std::string>{"layer1"});
    QVERIFY2(after[1].words.starts_with("row parallel 8"), after[1].words.c_str());
    QVERIFY(after[0].words == "data parallel 8" && after[2].words == "data parallel 8");
    QCOMPARE(after[0].layers.back(), std::string("layer0"));
    QCOMPARE(after[2].layers.front(), std::string("layer2"));
    // Nothing is lost or told twice.
    std::vector<std::string> all;
    for (const LayerWords& line : after) all.insert(all.end(), line.layers.begin(), line.layers.end());
    QCOMPARE(all, before[0].layers);
  }

  // By hand: weights, states at the host and running again of one layer, all of it and a part.
  void choices_of_memory_are_of_their_layer() {
    Case split = found("data-parallel", builtin(kLlama4, 32), "v100-16gb-1x8");
    std::vector<PlanOperator*> weighted;
    for (PlanOperator& op : split.plan.operators)
      if (in_layer1(split.model().operators[op.op].name) && !op.parameters.empty()) weighted.push_back(&op);
    const int count = int(weighted.size());
    QVERIFY(count >= 7);
    weighted[0]->choice.update = Update::sharded_weights;
    weighted[1]->choice.offload = true;
    weighted[2]->choice.recompute = true;
    QCOMPARE(split.by_part().at("layer1"),
             fmt::format("data parallel 8, ZeRO-3 for 1 of {0} operators, optimizer state at the host for 1 of {0} "
                         "operators, checkpointing in 1 operator",
                         count));
    QCOMPARE(split.by_part().at("layer0"), std::string("data parallel 8"));
    for (PlanOperator* op : weighted) {
      op->choice.update = Update::sharded;
      op->choice.offload = op->choice.recompute = true;
    }
    QCOMPARE(split.by_part().at("layer1"),
             fmt::format("data parallel 8, ZeRO-2, optimizer state at the host, checkpointing in {} operators", count));
  }

  // By hand: the experts of one layer over all devices.
  void experts_of_one_layer() {
    Case split = found("data-parallel", builtin(kMixture, 32), "v100-16gb-1x8");
    const auto experts = [](const std::string& name) { return name.starts_with("layer1/mlp/experts_"); };
    QCOMPARE(split.move(experts, DimName::expert), 4);
    const auto said = split.by_part();
    QCOMPARE(said.at("layer0"), std::string("data parallel 8"));
    QCOMPARE(said.at("layer1"), std::string("data parallel 8, expert parallel 8"));
  }

  // A layer in halves: the times are made so that its products say 3 : 1.
  void a_mixture_within_a_layer_is_told_in_shares() {
    Case split = found("data-parallel", builtin(kLlama4, 32), "v100-16gb-1x2");
    for (PlanOperator& op : split.plan.operators)
      if (in_layer1(split.model().operators[op.op].name)) op.cost.compute = {};
    PlanOperator &down = split.op("layer1/mlp/down"), &up = split.op("layer1/mlp/up");
    up.cost[ComputePart::forward] = 3, down.cost[ComputePart::forward] = 1;
    const Operator& what = split.model().operators[down.op];
    for (std::size_t d = 0; d < what.dims.size(); ++d)
      if (what.dims[d].role == DimRole::reduction) down.split.axis[0] = std::int8_t(d);
    QCOMPARE(split.by_part().at("layer1"),
             std::string("data parallel 2 for 75 % of its computing, row parallel 2 for 25 %"));
    down.cost[ComputePart::forward] = 0.1;  // below what is worth saying
    QCOMPARE(split.by_part().at("layer1"), std::string("data parallel 2 for 97 % of its computing"));
  }

  // What is by sequence where the whole is tensor parallel is no context parallelism; where it is not, it is.
  void norms_and_look_ups_outside_of_layers_go_with_the_layers() {
    const ModelPtr llama = builtin(kLlama4, 32);
    const auto with_last_norm_apart = [](const Case& split) {
      auto model = std::make_shared<Model>(split.model());
      for (Operator& op : model->operators)
        if (op.name == "head/norm") op.name = "last/norm", op.scope = "last";
      std::string words;
      for (const LayerWords& line : words_by_layer(split.plan, *model))
        if (std::ranges::find(line.layers, "last") != line.layers.end()) words = line.words;
      return words;
    };
    QCOMPARE(with_last_norm_apart(found("manual:tp=8:sequence-parallel", llama, "v100-16gb-1x8")),
             std::string("sequence parallel 8"));
    QCOMPARE(with_last_norm_apart(found("manual:tp=8", llama, "v100-16gb-1x8")),
             std::string("repeated on all devices"));
    QCOMPARE(with_last_norm_apart(found("manual:cp=8", llama, "v100-16gb-1x8")), std::string("context parallel 8"));
    // 50,257 words divide by nothing.
    const ModelPtr gpt = builtin("gpt2?layers=2&hidden=256&sequence=64", 32);
    QCOMPARE(found("manual:tp=4:sequence-parallel", gpt, "v100-16gb-1x4").by_part().at("embed"),
             std::string("sequence parallel 4"));
    QCOMPARE(found("manual:cp=4", gpt, "v100-16gb-1x4").by_part().at("embed"), std::string("context parallel 4"));
  }

  // By hand: one weird trick, convolutions by batch and the classifier's products by rows.
  void networks_without_layers() {
    Case split = found("data-parallel", builtin("alexnet", 64), "v100-16gb-1x4");
    QCOMPARE(split.told(), QStringList{"features, classifier: data parallel 4"});
    for (PlanOperator& op : split.plan.operators) {
      const Operator& what = split.model().operators[op.op];
      if (what.kind != OperatorKind::matmul) continue;
      for (std::size_t d = 0; d < what.dims.size(); ++d)
        if (what.dims[d].role == DimRole::reduction) op.split.axis[0] = op.split.axis[1] = std::int8_t(d);
    }
    const auto lines = split.lines();
    QCOMPARE(lines.size(), std::size_t(2));
    QCOMPARE(describe(lines[0]), std::string("features: data parallel 4"));
    QVERIFY2(lines[1].words.starts_with("row parallel 4"), lines[1].words.c_str());
    // Without any path, a product and what follows it.
    QCOMPARE(found("data-parallel", residual(64), "v100-16gb-1x4").lines()[0].layers,
             (std::vector<std::string>{"stem", "fc1", "fc2", "head"}));
  }

  // Stages of unlike many operators, all of which run again, are one line.
  void counts_of_a_line_are_a_range() {
    Case split = found("data-parallel", builtin("resnet18", 64), "v100-16gb-1x4");
    std::map<std::string, int> again;
    for (PlanOperator& op : split.plan.operators) {
      const Operator& what = split.model().operators[op.op];
      if (what.kind != OperatorKind::convolution) continue;
      op.choice.recompute = true;
      ++again[what.name.substr(0, what.name.find('/'))];
    }
    QVERIFY(again.size() >= 5);
    int fewest = 1000, most = 0;
    for (const auto& [part, count] : again) fewest = std::min(fewest, count), most = std::max(most, count);
    QVERIFY(fewest < most);
    QCOMPARE(split.lines()[0].words, fmt::format("data parallel 4, checkpointing in {} to {} operators", fewest, most));
    QCOMPARE(split.lines()[0].layers.size(), again.size());
  }

  // The same transformer without its paths: its layers are found from the graph.
  void layers_without_names() {
    Case split = found("manual:tp=4", builtin(kLlama4, 32), "v100-16gb-1x4");
    auto flat = std::make_shared<Model>(split.model());
    for (std::size_t i = 0; i < flat->operators.size(); ++i) {
      Operator& op = flat->operators[OperatorId(i)];
      op.name = fmt::format("node_{}", i), op.scope.clear();
    }
    std::set<std::string> layers;
    for (const LayerWords& line : words_by_layer(split.plan, *flat))
      for (const std::string& layer : line.layers) {
        if (layer.starts_with("layer ")) {
          QCOMPARE(line.words, std::string("tensor parallel 4 (column, row)"));
          layers.insert(layer);
        } else {
          QVERIFY2(layer == "before the layers" || layer == "behind the layers", layer.c_str());
        }
      }
    QCOMPARE(layers, (std::set<std::string>{"layer 0", "layer 1", "layer 2", "layer 3"}));
  }

  void places_are_short() {
    const auto place = [](std::vector<std::string> layers) { return place_of({std::move(layers), {}}); };
    QCOMPARE(place({"layer0", "layer1", "layer2"}), std::string("layer0 to layer2"));
    QCOMPARE(place({"embed", "layer0", "layer1", "layer2", "head"}), std::string("embed, layer0 to layer2, head"));
    QCOMPARE(place({"a", "b", "c"}), std::string("a, b, c"));
    QCOMPARE(place({"a", "b", "c", "d"}), std::string("a to d (4 parts)"));
    QCOMPARE(place({"a, b", "c, d", "e, f"}), std::string("a, b, c, d, e, f"));  // three names, commas and all
    QCOMPARE(place_of({{"layer0", "layer1", "layer2"}, {}, {0}}), std::string("layer0 to layer2 on stage 0"));
    QCOMPARE(place_of({{"embed", "head"}, {}, {0, 3}}), std::string("embed, head on stages 0, 3"));
  }

  // Alike in words, and on two stages: a line each; one stage after the other holds all of its layers.
  void stages_are_told() {
    const ModelPtr llama = builtin(kLlama4, 32);
    const Case split = found("manual:pp=2:micro-batches=4", llama, "v100-16gb-1x8");
    QVERIFY(split.plan.pipeline && split.plan.pipeline->stages == 2);
    std::map<std::string, std::vector<int>> stages;
    for (const LayerWords& line : split.lines())
      for (const std::string& layer : line.layers) stages[layer] = line.stages;
    QCOMPARE(stages.at("layer0"), std::vector<int>{0});
    QCOMPARE(stages.at("layer1"), std::vector<int>{0});
    QCOMPARE(stages.at("layer2"), std::vector<int>{1});
    QCOMPARE(stages.at("head"), std::vector<int>{1});
    for (const PlanOperator& op : split.plan.operators) {
      const std::string part = layer_name(split.model().operators[op.op]);
      if (part.starts_with("layer")) QCOMPARE(stages.at(part), std::vector<int>{op.stage});
    }
    QVERIFY(split.told().join(u'\n').contains(" on stage 1: "));
    for (const LayerWords& line : found("manual:micro-batches=4", llama, "v100-16gb-1x8").lines())
      QVERIFY(line.stages.empty());
  }

  // A plan of least memory of every kind of network: each operator that computes is in one part, and words never fail.
  void every_part_is_told_once() {
    for (const char* name : {"rnn?layers=2&hidden=256", "resnet18", "gpt2?layers=2&hidden=256&sequence=64", "ncf",
                             "transformer-big?layers=2&hidden=256&sequence=32"}) {
      const Case split = found("ft:micro-batches=1", builtin(name, 32), "v100-16gb-1x4");
      std::set<std::string> parts;
      for (const LayerWords& line : split.lines()) {
        QVERIFY2(!line.layers.empty() && !line.words.empty(), name);
        for (const std::string& part : line.layers) QVERIFY2(parts.insert(part).second, part.c_str());
      }
      QVERIFY2(parts.size() > 1, name);
    }
  }
};

QTEST_APPLESS_MAIN(LayerWordsTest)
#include "layer_words_test.moc"
