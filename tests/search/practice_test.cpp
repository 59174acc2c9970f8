// SPDX-License-Identifier: Apache-2.0
// Today's practice (manual, megatron, fsdp, data-parallel) against what the programs of that name do, counted here by
// hand: bytes and collectives of a layer of a Llama, in the terms of Korthikanti et al. 2022 (arXiv 2205.05198).
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/import/huggingface/huggingface.h"
#include "core/import/transformer/transformer.h"
#include "core/plan/evaluator.h"
#include "core/plan_io/result_json.h"
#include "search/scenarios.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

// Four heads of 128 channels.
constexpr std::int64_t kBatch = 4, kSequence = 64, kHidden = 512, kHeads = 4;

ModelPtr llama(int layers) {
  return builtin("llama-2-7b?hidden=512&sequence=64&layers=" + std::to_string(layers), kBatch);
}
std::int64_t inner() {
  const auto model = llama(1);
  for (const auto& op : model->operators)
    if (op.name.ends_with("mlp/gate")) return model->tensors[op.outputs.front().tensor].shape.back();
  qFatal("no gate");
}

Plan plan_of(const std::string& text, const ScenarioPtr& scenario) {
  const auto result = run(text, scenario);
  if (!result) qFatal("%s: %s", text.c_str(), result.error().message().c_str());
  return (*result)->plans->sharding(0);
}

// What one more layer adds.
CostBreakdown a_layer(const std::string& text, const char* hardware) {
  const auto rings = [](Settings& s) { s.collectives = Collectives::rings; };
  CostBreakdown more = plan_of(text, scenario_on(llama(4), hardware, rings)).cost;
  const CostBreakdown less = plan_of(text, scenario_on(llama(3), hardware, rings)).cost;
  for (std::size_t i = 0; i < kMemoryParts; ++i) more.memory[i] -= less.memory[i];
  for (std::size_t i = 0; i < kComputeParts; ++i) more.compute[i] -= less.compute[i];
  for (std::size_t i = 0; i < kNetworkParts; ++i) more.network[i] -= less.network[i];
  return more;
}

constexpr std::int64_t kStream = kBatch * kSequence * kHidden * 4;             // the residual stream, fp32
constexpr std::int64_t kScores = kBatch * kHeads * kSequence * kSequence * 4;  // attention's probabilities
std::int64_t inner_bytes() { return kBatch * kSequence * inner() * 4; }

std::string notes(const std::string& text, const ScenarioPtr& scenario) {
  const auto result = run(text, scenario);
  if (!result) qFatal("%s: %s", text.c_str(), result.error().message().c_str());
  return write_result(**result, false).value("notes", nlohmann::json::array()).dump();
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

}  // namespace

class PracticeTest : public QObject {
  Q_OBJECT

 private slots:
  // Both norms' outputs, queries, keys, values, context and both sums; gate, up and their product; the probabilities.
  // With sequence parallelism all of it is split: what the norms hand on is gathered again in backward. Gathered in
  // forward: two norms' outputs; in backward: two gradients of sums, and the norms' outputs once more.
  void sequence_parallelism_keeps_a_part_of_everything() {
    CostBreakdown layer = a_layer("manual:tp=2:sequence-parallel", "v100-16gb-1x2");
    QCOMPARE(layer[MemoryPart::activations] + layer[MemoryPart::copies],
             (8 * kStream + 3 * inner_bytes() + kScores) / 2);
    const auto link = cluster_preset("v100-16gb-1x2")->get()->links[kIntraNode];
    const double once = link.latency_s + double(kStream) / 2 / link.bandwidth;  // a ring of two
    QVERIFY2(near(layer[NetworkPart::all_gather], 6 * once),
             qPrintable(QString::number(layer[NetworkPart::all_gather] / once)));
    QVERIFY(near(layer[NetworkPart::reduce_scatter], 4 * once));
    // Megatron's own points, and on two nodes; both can be evaluated without the search's tables.
    for (const char* hardware : {"v100-16gb-1x4", "v100-16gb-2x4"})
      for (const char* method : {"megatron:sequence-parallel", "manual:tp=4:sequence-parallel"}) {
        const auto scenario = scenario_on(llama(2), hardware);
        const auto result = run(method, scenario);
        QVERIFY(result.has_value());
        for (std::size_t k = 0; k < (*result)->points.size(); ++k) {
          const auto cost = evaluate_plan(*scenario, (*result)->plans->sharding(k));
          QVERIFY2(cost.has_value(), cost ? "" : cost.error().message().c_str());
          QCOMPARE(cost->memory_bytes(), (*result)->points[k].memory_bytes);
          QVERIFY(close(cost->time_s(), (*result)->points[k].time_s));
        }
      }
  }

  // Without it the norms and the sums stand whole on every device, and nothing is gathered.
  void tensor_parallelism_alone_repeats_the_stream() {
    CostBreakdown layer = a_layer("manual:tp=2", "v100-16gb-1x2");
    QCOMPARE(layer[MemoryPart::activations] + layer[MemoryPart::copies],
             4 * kStream + (4 * kStream + 3 * inner_bytes() + kScores) / 2);
    QCOMPARE(layer[NetworkPart::all_gather], 0.0);
  }

  // Two stages, one micro-batch: the first waits while the second receives and computes, and is busy receiving the
  // gradient; nothing else is sent.
  void a_stage_that_waits_is_not_sending() {
    const auto scenario = scenario_on(llama(4), "v100-16gb-1x2");
    const auto result = run("manual:pp=2", scenario);
    QVERIFY(result.has_value());
    Plan plan = (*result)->plans->sharding(0);
    const auto link = scenario->cluster->links[kIntraNode];
    const double send = link.latency_s + double(kStream) / link.bandwidth;
    double second = send;
    for (auto& op : plan.operators)
      if (op.stage == 1) second += op.cost[ComputePart::forward] + op.cost[ComputePart::backward];
    QVERIFY(close(plan.cost[NetworkPart::permute], send));
    QVERIFY(close(plan.cost[NetworkPart::bubble], second));
    QVERIFY(close(plan.cost.network_s(), send + second));
    const auto written = write_result(**result, true);
    QVERIFY(close(written["plans"][0]["cost"]["network"]["bubble"].get<double>(), second));
    QVERIFY(close(written["plans"][0]["cost"]["network"]["permute"].get<double>(), send));
    QVERIFY(close(written["points"][0]["network_s"].get<double>(), send + second));
  }

  // Selective recomputation: what a core makes between its products is there once, whatever the number of layers; both
  // products and the softmax run once more in every layer and micro-batch, and everything else is as it was.
  void cores_of_attention_run_again() {
    const auto core_seconds = [](const Scenario& scenario, const Plan& plan) {
      double seconds = 0;
      for (PlanOperator op : plan.operators) {
        const auto& name = scenario.model->operators[op.op].name;
        if (name.ends_with("/scores") || name.ends_with("/softmax") || name.ends_with("/context"))
          seconds += op.cost[ComputePart::forward];
      }
      return seconds;
    };
    for (const char* split : {"", ":tp=2", ":tp=2:sequence-parallel", ":zero=3", ":micro-batches=2"}) {
      const auto scenario = scenario_on(llama(4), "v100-16gb-1x2");
      const std::int64_t part = std::string_view(split) == ":micro-batches=2" ? 4 : 2;  // of the batch, or of the heads
      Plan plain = plan_of(std::string("manual") + split, scenario),
           again = plan_of(std::string("manual") + split + ":recompute=selective", scenario);
      QCOMPARE(again.cost.memory_bytes(), plain.cost.memory_bytes() - 3 * kScores / part);
      QCOMPARE(again.cost[MemoryPart::activations], plain.cost[MemoryPart::activations] - 3 * kScores / part);
      const double more = core_seconds(*scenario, plain) * (part == 4 ? 2 : 1);
      QVERIFY(more > 0 && close(again.cost[ComputePart::recompute], more));
      QVERIFY(close(again.cost.time_s(), plain.cost.time_s() + more));
      QVERIFY(close(again.cost.network_s(), plain.cost.network_s()));
      // Everything of a layer runs again in full recomputation: more time, less memory.
      Plan full = plan_of(std::string("manual") + split + ":recompute=full", scenario);
      QVERIFY(full.cost.time_s() > again.cost.time_s() && full.cost.memory_bytes() < again.cost.memory_bytes());
      QCOMPARE(plan_of(std::string("manual") + split + ":recompute", scenario).cost.memory_bytes(),
               full.cost.memory_bytes());
    }
  }

  // LeNet on four devices: 6 channels and 10 classes are 2 and 3 rows a device. What fills these up is held, gathered
  // and scattered like the rest. DeepSpeed's stages 1 and 2 and the papers cut parameters as one run.
  void shards_of_fully_sharded_are_whole_rows() {
    const auto scenario = scenario_on(builtin("lenet", 8), "v100-16gb-1x4", [](Settings& s) {
      s.collectives = Collectives::rings;
      s.bucket_bytes = 0;
    });
    const Model& model = *scenario->model;
    std::int64_t exact = 0, padded = 0;
    for (std::size_t t = 0; t < model.tensors.size(); ++t) {
      const Tensor& tensor = model.tensors[TensorId(t)];
      if (tensor.role != TensorRole::parameter) continue;
      const std::int64_t row = tensor.elements() / tensor.shape[0];
      exact += tensor.elements();
      padded += (tensor.shape[0] + 3) / 4 * 4 * row;
    }
    QVERIFY(padded > exact);
    Plan plan = plan_of("fsdp", scenario);
    QCOMPARE(plan.cost[MemoryPart::parameters], padded / 4 * 4);
    QCOMPARE(plan.cost[MemoryPart::gradients], padded / 4 * 4);
    double gathered = 0, scattered = 0;
    for (const auto& op : plan.operators)
      for (const auto& group : op.parameters) {
        for (const auto& step : group.gather) gathered += step.bytes;
        for (const auto& step : group.sync) scattered += step.bytes;
      }
    // Before forward and before backward; the data needs no gradient, so that the first layer (8 rows of 25 and of 1)
    // is read once. Three quarters come from others.
    QCOMPARE(gathered, double(2 * padded - 8 * 26) * 4 * 3 / 4);
    QCOMPARE(scattered, double(padded) * 4 * 3 / 4);
    const auto cost = evaluate_plan(*scenario, plan);
    QVERIFY2(cost && cost->memory_bytes() == plan.cost.memory_bytes() && close(cost->time_s(), plan.cost.time_s()),
             cost ? "" : cost.error().message().c_str());
    QVERIFY(plan_of("fsdp:zero=2", scenario).cost[MemoryPart::gradients] < padded);
    auto paper = std::make_shared<Scenario>(*scenario);
    paper->settings.accounting = Accounting::paper;
    QVERIFY(plan_of("fsdp", paper).cost[MemoryPart::parameters] < padded);
  }

  // By operator: everything of a layer but every other product with a weight, as far as the plan's rules let it run
  // again. More time than nothing and less than everything, and the other way round with memory.
  void operators_run_again_by_themselves() {
    for (const char* split :
         {"manual", "manual:tp=2", "manual:tp=2:sequence-parallel", "manual:zero=3", "manual:micro-batches=2",
          "manual:pp=2:micro-batches=2", "fsdp", "fsdp:micro-batches=2"}) {
      const auto scenario = scenario_on(llama(4), "v100-16gb-1x2");
      Plan plain = plan_of(split, scenario), again = plan_of(std::string(split) + ":recompute=op", scenario);
      QVERIFY2(again.cost[ComputePart::recompute] > 0 && plain.cost[ComputePart::recompute] == 0, split);
      QVERIFY2(again.cost.memory_bytes() < plain.cost.memory_bytes(), split);
      QVERIFY2(close(again.cost[ComputePart::forward], plain.cost[ComputePart::forward]), split);
      const auto cost = evaluate_plan(*scenario, again);
      QVERIFY2(cost && cost->memory_bytes() == again.cost.memory_bytes() && close(cost->time_s(), again.cost.time_s()),
               cost ? split : cost.error().message().c_str());
      std::set<std::string> twice;
      for (const auto& op : again.operators) {
        const auto& name = scenario->model->operators[op.op].name;
        if (op.choice.recompute) twice.insert(name.substr(name.rfind('/') + 1));
      }
      // Of the seven products with a weight the first is kept, the second is not, and so on.
      for (const char* name : {"k", "up", "norm", "softmax"}) QVERIFY2(twice.contains(name), split);
      for (const char* name : {"q", "v", "gate", "down", "loss"}) QVERIFY2(!twice.contains(name), split);
    }
    QVERIFY(!run("fsdp:recompute=op", scenario_on(builtin("lenet", 4), "v100-16gb-1x2")).has_value());
    // A relu reads what a product made that does not run again, and nobody keeps that: the relu does not run again
    // either.
    const auto source = parse_huggingface_config(R"({"model_type": "opt", "hidden_size": 64, "ffn_dim": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 96, "dropout": 0, "max_position_embeddings": 32,
        "activation_function": "relu"})",
                                                 "config.json");
    QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
    const auto opt = (*source)->bind({4, 16});
    QVERIFY(opt.has_value());
    const auto scenario = scenario_on(*opt, "v100-16gb-1x2");
    const Plan plan = plan_of("manual:recompute=op", scenario);
    int relus = 0;
    for (const auto& op : plan.operators) {
      const std::string& detail = scenario->model->operators[op.op].detail;
      if (detail != "Relu" && detail != "relu") continue;
      ++relus;
      QVERIFY(!op.choice.recompute);
    }
    QCOMPARE(relus, 2);
    const auto cost = evaluate_plan(*scenario, plan);
    QVERIFY2(cost && cost->memory_bytes() == plan.cost.memory_bytes(), cost ? "" : cost.error().message().c_str());
  }

  // Of two stages the first has two micro-batches in flight, the second one: the probabilities of as many and of all
  // its layers are kept, of selective recomputation those of one.
  void every_stage_has_one_core_at_a_time() {
    const auto scenario = scenario_on(llama(4), "v100-16gb-1x2");
    const Plan plain = plan_of("manual:pp=2:micro-batches=2", scenario),
               again = plan_of("manual:pp=2:micro-batches=2:recompute=selective", scenario);
    std::int64_t layers[2] = {0, 0};
    for (const auto& op : again.operators)
      layers[op.stage] += scenario->model->operators[op.op].name.ends_with("/softmax");
    QCOMPARE(layers[0] + layers[1], 4);
    for (std::size_t s = 0; s < 2; ++s)
      QCOMPARE(again.pipeline->stage_memory_bytes[s],
               plain.pipeline->stage_memory_bytes[s] - ((s == 0 ? 2 : 1) * layers[s] - 1) * kScores / 2);
  }

  void other_methods_offer_it_beside_their_own_points() {
    const auto scenario = scenario_on(llama(4), "v100-16gb-2x2");
    const auto point = [&](const std::string& text) {
      const auto result = run(text, scenario);
      if (!result) qFatal("%s: %s", text.c_str(), result.error().message().c_str());
      return (*result)->points.front();
    };
    QCOMPARE(point("fsdp:recompute=selective"), point("manual:zero=3:recompute=selective"));
    QCOMPARE(point("fsdp:zero=1:recompute=selective"), point("manual:zero=1:recompute=selective"));
    const auto spared = [&](const std::string& text) {
      return point(text).memory_bytes - point(text + ":recompute=selective").memory_bytes;
    };
    QCOMPARE(spared("fsdp:group=node"), 3 * kScores / 4);
    const auto all = run("megatron:recompute=selective", scenario);
    QVERIFY(all.has_value() && (*all)->method == "megatron" && (*all)->method_options == "recompute=selective");
    for (const auto& p : (*all)->points)
      QVERIFY(p == point("manual:recompute=selective") || p == point("manual:tp=2:recompute=selective"));
    QVERIFY(!run("fsdp:recompute=selective", scenario_on(builtin("lenet", 4), "v100-16gb-1x2")).has_value());
    QVERIFY(!run("fsdp:recompute=full", scenario).has_value());
    QVERIFY(!run("manual:recompute=some", scenario).has_value());
  }

  void a_batch_that_does_not_divide_is_said() {
    // 18 = 2 x 3 x 3 devices: 256 divides by the 2 alone.
    const auto odd = scenario_on(builtin("lenet", 256), "v100-16gb-2x9");
    const std::string batch =
        R"(["a batch of 256 cannot be divided over 18 devices: it is over 2, which the others repeat"])";
    for (const char* method : {"data-parallel", "fsdp", "fsdp:zero=1"}) QCOMPARE(notes(method, odd), batch);
    QCOMPARE(notes("data-parallel", scenario_on(builtin("lenet", 256), "v100-16gb-2x8")), "[]");
    QCOMPARE(notes("fsdp", scenario_on(builtin("lenet", 1), "v100-16gb-1x2")),
             R"(["a batch of 1 cannot be divided over 2 devices: all of them do the same work"])");
    QCOMPARE(notes("ft", scenario_on(builtin("lenet", 6), "v100-16gb-1x4")), "[]");
  }

  void a_vocabulary_that_does_not_divide_is_said() {
    // 50257 = 29 x 1733: no group size divides it.
    const auto gpt = scenario_on(builtin("gpt2?layers=2&sequence=32", 8), "v100-16gb-1x4");
    const auto vocabulary = [](const char* groups) {
      return std::string("[\"a vocabulary of 50257 cannot be divided over tensor groups of ") + groups +
             ": embedding and logits stand whole on every device (Megatron pads the vocabulary)\"]";
    };
    QCOMPARE(notes("manual:tp=4", gpt), vocabulary("4"));
    QCOMPARE(notes("manual:tp=2:pp=2:micro-batches=2", gpt), vocabulary("2"));
    QCOMPARE(notes("megatron", gpt), vocabulary("2, 4"));
    QCOMPARE(notes("manual:dp=4", gpt), "[]");
    QCOMPARE(notes("manual:tp=2", scenario_on(llama(1), "v100-16gb-1x2")), "[]");
    // A table of two kinds of tokens is no vocabulary.
    TransformerShape shape;
    shape.layers = 2, shape.hidden = 32, shape.heads = shape.kv_heads = 4, shape.head_channels = 8;
    shape.intermediate = 64, shape.vocabulary = 64, shape.positions = 8, shape.token_types = 2;
    const auto typed = build_transformer(shape, "typed", "test", 4, 8);
    QVERIFY(typed.has_value());
    QCOMPARE(notes("manual:tp=4", scenario_on(*typed, "v100-16gb-1x4")),
             R"(["the table of 2 of 'embed/types' cannot be divided over tensor groups of 4: it stands whole on every )"
             R"(device"])");
  }
};

QTEST_APPLESS_MAIN(PracticeTest)
#include "practice_test.moc"
