// SPDX-License-Identifier: Apache-2.0
// Hand-made splits: against data-parallel and Megatron's points, the scheduled path against the plain sum, memory
// against arithmetic done here, refusals, and random legal splits on 1 to 64 devices.
#include <QtTest>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "core/import/huggingface/huggingface.h"
#include "core/plan/evaluator.h"
#include "core/plan/micro_batch.h"
#include "core/plan_io/result_json.h"
#include "core/search/baselines/manual.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

// 8 heads, 4 layers.
ModelPtr small_gpt(std::int64_t batch = 32) { return builtin("gpt2?layers=4&hidden=512&sequence=32", batch); }

QString why(const Expected<ResultPtr>& result) {
  return result ? QString() : QString::fromStdString(result.error().message());
}

ResultPoint point_of(const std::string& method, const ScenarioPtr& scenario) {
  const auto result = run(method, scenario);
  if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
  return (*result)->points.front();
}

// Queries, keys and values by way of a narrow projection each, queries also straight from the stream.
ModelPtr latent_attention(bool narrow_queries, std::int64_t batch = 16) {
  const std::string text = R"({"model_type": "deepseek_v2", "hidden_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128, "moe_intermediate_size": 32,
    "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1,
    "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "vocab_size": 96,
    "q_lora_rank": )" + std::string(narrow_queries ? "24" : "null") +
                           "}";
  const auto source = parse_huggingface_config(text, "config.json");
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto model = (*source)->bind({batch, 8});
  if (!model) qFatal("%s", model.error().message().c_str());
  return *model;
}

// Attends to a sequence that is not its own and has no other attention.
ModelPtr attends_across(std::int64_t batch = 16) {
  ModelBuilder b("across", "test", batch, 8);
  const std::vector<DimName> dims{DimName::batch, DimName::sequence, DimName::channel};
  const TensorId own = b.input("own", {batch, 8, 32}, dims, ElementType::f32);
  const TensorId other = b.input("other", {batch, 8, 32}, dims, ElementType::f32);
  const TensorId x = b.linear("stem", own, b.parameter("w0", {32, 32}));
  const TensorId y = b.linear("memory", other, b.parameter("w1", {32, 32}));
  const TensorId q = b.linear("q", x, b.parameter("wq", {32, 32}));
  const TensorId k = b.linear("k", y, b.parameter("wk", {32, 32}));
  const TensorId v = b.linear("v", y, b.parameter("wv", {32, 32}));
  const TensorId scores = b.matmul("scores", q, k, false, true);
  const TensorId context = b.matmul("context", b.softmax("softmax", scores, 2), v);
  return finished(b, b.linear("out", context, b.parameter("wo", {32, 32})));
}

}  // namespace

class ManualTest : public QObject {
  Q_OBJECT

 private slots:
  void data_parallel_alone_is_data_parallel() {
    for (const auto& model : {small_gpt(), test::mlp(), test::convolution()})
      for (const char* hardware : {"v100-16gb-1x1", "v100-16gb-1x8", "v100-16gb-2x8", "a100-80gb-3x4"}) {
        const auto scenario = scenario_on(model, hardware);
        if (model->batch % scenario->cluster->devices()) continue;
        QCOMPARE(point_of("manual", scenario), point_of("data-parallel", scenario));
        const auto dp = "manual:dp=" + std::to_string(scenario->cluster->devices());
        QCOMPARE(point_of(dp, scenario), point_of("data-parallel", scenario));
        QCOMPARE(point_of("manual:zero=3", scenario), point_of("fsdp", scenario));
      }
  }

  void tensor_groups_are_megatrons() {
    for (const char* hardware : {"v100-16gb-1x8", "v100-16gb-2x8"}) {
      const auto scenario = scenario_on(small_gpt(), hardware);
      const auto megatron = run("megatron", scenario);
      QVERIFY2(megatron.has_value(), qPrintable(why(megatron)));
      std::size_t met = 0;
      for (const int tensor : {1, 2, 4, 8}) {
        const auto point = point_of("manual:tp=" + std::to_string(tensor), scenario);
        bool beaten = false;
        for (const auto& p : (*megatron)->points) {
          met += p == point;
          beaten = beaten || (p != point && p.memory_bytes <= point.memory_bytes && p.time_s <= point.time_s);
        }
        QVERIFY(beaten || std::count((*megatron)->points.begin(), (*megatron)->points.end(), point) == 1);
      }
      QCOMPARE(met, (*megatron)->points.size());
    }
  }

  // One stage and one micro-batch through the schedule is the plain sum.
  void the_schedule_of_nothing_is_the_sum() {
    for (const int zero : {0, 1, 2, 3})
      for (const int tensor : {1, 2, 4}) {
        const auto scenario = scenario_on(small_gpt(), "v100-16gb-2x8");
        const auto roles = find_transformer_roles(*scenario->model, false);
        QVERIFY(roles.has_value());
        search::ManualSplit split;
        split.data = 16 / tensor, split.tensor = tensor, split.zero = zero;
        const auto scheduled = search::pipeline_point(scenario, &*roles, split, {});
        QVERIFY2(scheduled.has_value(), qPrintable(why(scheduled)));
        const auto plain = point_of("manual:tp=" + std::to_string(tensor) + ":zero=" + std::to_string(zero), scenario);
        const auto& point = (*scheduled)->points.front();
        QCOMPARE(point.memory_bytes, plain.memory_bytes);
        QVERIFY(close(point.time_s, plain.time_s) && close(point.compute_s, plain.compute_s));
        // Not only the sum: every collective has its own share.
        const auto other = run("manual:tp=" + std::to_string(tensor) + ":zero=" + std::to_string(zero), scenario);
        const auto mine = (*scheduled)->plans->sharding(0).cost, its = (*other)->plans->sharding(0).cost;
        for (std::size_t i = 0; i < kNetworkParts; ++i)
          QVERIFY2(std::abs(mine.network[i] - its.network[i]) < 1e-9 * plain.time_s, qPrintable(QString::number(i)));
      }
  }

  // Stages are named apart: tensor groups sum as before, what is left is sent or waited for.
  void a_pipeline_tells_collectives_from_waiting() {
    const auto scenario = scenario_on(small_gpt(), "v100-16gb-2x8");
    for (const char* text : {"manual:dp=2:tp=2:pp=4:micro-batches=4", "manual:tp=4:pp=4:micro-batches=2:recompute"}) {
      const auto result = run(text, scenario);
      QVERIFY2(result.has_value(), qPrintable(why(result)));
      auto plan = (*result)->plans->sharding(0);
      QVERIFY(plan.pipeline.has_value() && plan.pipeline->bubble_s > 0);
      QVERIFY(close(plan.cost.time_s(), (*result)->points.front().time_s));
      QVERIFY(plan.cost[NetworkPart::all_reduce] > 0);
      QVERIFY(close(plan.cost[NetworkPart::bubble], plan.pipeline->bubble_s));
      QVERIFY(plan.cost[NetworkPart::permute] > 0 && plan.cost[NetworkPart::permute] < plan.pipeline->bubble_s);
    }
  }

  void layers_are_found() {
    const auto roles = find_transformer_roles(*small_gpt(), false);
    QVERIFY(roles.has_value());
    QCOMPARE(roles->layers, 4);
    QCOMPARE(roles->heads, 8);
    QCOMPARE(roles->inner, 2048);
    const auto model = small_gpt();
    for (int l = 0; l < 4; ++l) {
      const auto i = static_cast<std::size_t>(l);
      const std::string scope = "layer" + std::to_string(l);
      for (std::uint32_t p = roles->start[i]; p < roles->start[i + 1]; ++p)
        QVERIFY2(model->operators[OperatorId(p)].scope.starts_with(scope),
                 model->operators[OperatorId(p)].name.c_str());
      QCOMPARE(roles->start[i + 1] - roles->start[i], roles->start[1] - roles->start[0]);
      QCOMPARE(roles->enters[i].size(), std::size_t(1));  // the residual stream
    }
    for (const auto& [name, layers] :
         {std::pair("transformer", 32), std::pair("bert-large", 24), std::pair("llama-2-70b", 80)}) {
      const auto other = find_transformer_roles(*builtin(name, 8), false);
      QVERIFY(other.has_value());
      QVERIFY2(other->layers == layers, qPrintable(QString("%1: %2 layers").arg(name).arg(other->layers)));
    }
    for (const bool narrow : {false, true}) {
      const auto latent = find_transformer_roles(*latent_attention(narrow), false);
      QVERIFY(latent.has_value());
      QCOMPARE(latent->layers, 4);
      for (const auto& core : latent->attentions) QVERIFY(!core.across);
    }
    for (const char* name : {"vgg16", "resnet50", "rnn", "ncf"})
      QVERIFY(!find_transformer_roles(*builtin(name, 8), false).has_value());
  }

  void micro_batches_are_smaller_models() {
    for (const char* name : {"gpt2?layers=2&sequence=32", "mixtral-8x7b?layers=1&sequence=32", "wide-resnet"}) {
      const auto whole = builtin(name, 32), expected = builtin(name, 8);
      const auto part = micro_batch_model(whole, 4);
      QVERIFY2(part.has_value(), part ? "" : part.error().message().c_str());
      const auto a = summarise(**part), b = summarise(*expected);
      QCOMPARE((*part)->batch, expected->batch);
      QCOMPARE(a.parameters, b.parameters);
      QCOMPARE(a.activation_bytes, b.activation_bytes);
      QVERIFY(close(a.macs_forward, b.macs_forward) && close(a.macs_backward, b.macs_backward));
      for (std::size_t i = 0; i < expected->operators.size(); ++i) {
        const auto &x = (*part)->operators[OperatorId(i)], &y = expected->operators[OperatorId(i)];
        QVERIFY2(close(x.forward_flop, y.forward_flop) && close(x.backward_flop, y.backward_flop), y.name.c_str());
      }
      for (std::size_t t = 0; t < expected->tensors.size(); ++t)
        QVERIFY2((*part)->tensors[TensorId(t)].shape == expected->tensors[TensorId(t)].shape,
                 expected->tensors[TensorId(t)].name.c_str());
    }
    QVERIFY(!micro_batch_model(small_gpt(30), 4).has_value());
  }

  void stages_share_the_parameters() {
    const auto model = small_gpt();
    const auto scenario = scenario_on(model, "v100-16gb-2x8", [](Settings& s) { s.accounting = Accounting::paper; });
    const auto whole = run("manual:dp=16", scenario), halves = run("manual:pp=2:micro-batches=4", scenario);
    QVERIFY2(halves.has_value(), qPrintable(why(halves)));
    const Plan plan = (*halves)->plans->sharding(0);
    QVERIFY(plan.pipeline.has_value());
    QCOMPARE(plan.pipeline->stages, 2);
    QCOMPARE(plan.pipeline->micro_batches, 4);
    QVERIFY(plan.pipeline->bubble_s > 0);
    QCOMPARE(*std::max_element(plan.pipeline->stage_memory_bytes.begin(), plan.pipeline->stage_memory_bytes.end()),
             (*halves)->points.front().memory_bytes);
    std::int64_t parameters = 0;
    std::vector<int> stages;
    for (auto op : plan.operators) {
      parameters += op.cost[MemoryPart::parameters];
      stages.push_back(op.stage);
    }
    auto all = (*whole)->plans->sharding(0).cost;
    QCOMPARE(parameters, all[MemoryPart::parameters]);
    QCOMPARE(stages.front(), 0);
    QCOMPARE(stages.back(), 1);
    const auto cost = evaluate_plan(*scenario, plan);
    QVERIFY2(cost.has_value(), cost ? "" : cost.error().message().c_str());
    QVERIFY(close(cost->time_s(), (*halves)->points.front().time_s));
    QCOMPARE(cost->memory_bytes(), (*halves)->points.front().memory_bytes);
  }

  void more_micro_batches_shrink_the_bubble_and_recompute_the_memory() {
    const auto scenario = scenario_on(small_gpt(64), "v100-16gb-1x4");
    double before = 1;
    for (const int m : {1, 2, 4, 8, 16}) {
      const auto result = run("manual:pp=4:micro-batches=" + std::to_string(m), scenario);
      QVERIFY2(result.has_value(), qPrintable(why(result)));
      const Plan plan = (*result)->plans->sharding(0);
      const double share = plan.pipeline->bubble_s / (*result)->points.front().time_s;
      QVERIFY2(share < before, qPrintable(QString("%1 micro-batches: %2").arg(m).arg(share)));
      before = share;
    }
    for (const char* rest : {"", ":tp=2", ":pp=2:micro-batches=4", ":micro-batches=4"}) {
      const auto plain = point_of(std::string("manual") + rest, scenario),
                 again = point_of(std::string("manual") + rest + ":recompute", scenario);
      QVERIFY(again.memory_bytes < plain.memory_bytes);
      QVERIFY(again.time_s > plain.time_s);
      QVERIFY(again.compute_s < 1.4 * plain.compute_s);  // one more forward of three
    }
  }

  // Narayanan et al. 2021, section 2.2.2: v runs on every stage divide the waiting by v, and hold more.
  void virtual_stages_wait_less() {
    const auto scenario = scenario_on(builtin("llama-2-7b?layers=8&sequence=32", 64), "v100-16gb-1x4");
    const auto plan_of = [&](const char* text) { return (*run(text, scenario))->plans->sharding(0); };
    const Plan plain = plan_of("manual:pp=2:dp=2:micro-batches=4"),
               four = plan_of("manual:pp=2:dp=2:vp=4:micro-batches=4");
    QVERIFY(four.pipeline->bubble_s < 0.6 * plain.pipeline->bubble_s);
    QCOMPARE(four.pipeline->send_s.size(), std::size_t(7));
    QVERIFY(four.pipeline->stage_memory_bytes.front() > plain.pipeline->stage_memory_bytes.front());
    for (const PlanOperator& op : four.operators)
      if (const int layer = four.pipeline->layer_of[op.op.index]; layer >= 0)
        QCOMPARE(four.pipeline->run_of(op), layer);
  }

  void zero_needs_less_at_each_stage() {
    const auto scenario = scenario_on(small_gpt(), "v100-16gb-1x4");
    std::int64_t before = INT64_MAX;
    std::array<CostBreakdown, 4> cost;
    for (int zero = 0; zero < 4; ++zero) {
      const auto result = run("manual:zero=" + std::to_string(zero), scenario);
      QVERIFY2(result.has_value(), qPrintable(why(result)));
      QVERIFY((*result)->points.front().memory_bytes < before);
      before = (*result)->points.front().memory_bytes;
      cost[static_cast<std::size_t>(zero)] = (*result)->plans->sharding(0).cost;
    }
    const auto near = [](std::int64_t a, std::int64_t b) { return std::abs(a - b) < 4096; };  // rounding up of shards
    QVERIFY(near(cost[1][MemoryPart::optimizer], cost[0][MemoryPart::optimizer] / 4));
    QCOMPARE(cost[1][MemoryPart::gradients], cost[0][MemoryPart::gradients]);
    QVERIFY(near(cost[2][MemoryPart::gradients], cost[0][MemoryPart::gradients] / 4));
    QCOMPARE(cost[2][MemoryPart::parameters], cost[0][MemoryPart::parameters]);
    QVERIFY(near(cost[3][MemoryPart::parameters], cost[0][MemoryPart::parameters] / 4));
    QVERIFY(close(cost[1].network_s(), cost[2].network_s()));
  }

  void more_tensor_parallelism_never_needs_more_parameter_bytes() {
    for (const auto& model : {small_gpt(), builtin("llama-2-7b?layers=2&sequence=32", 16)}) {
      const auto scenario = scenario_on(model, "v100-16gb-2x8");
      std::int64_t before = INT64_MAX;
      for (const int tensor : {1, 2, 4, 8}) {
        const auto result = run("manual:tp=" + std::to_string(tensor), scenario);
        QVERIFY2(result.has_value(), qPrintable(why(result)));
        auto cost = (*result)->plans->sharding(0).cost;
        QVERIFY(cost[MemoryPart::parameters] < before);
        before = cost[MemoryPart::parameters];
      }
    }
  }

  // Korthikanti et al. 2022, equation 1: s b h (34 + 5 a s / h) bytes a layer in 16 bits, dropout masks (5 + a s / h of
  // those) included, which built-in models do not have. Fused attention keeps nothing of the second term.
  void activations_of_a_layer_are_in_the_known_band() {
    const std::int64_t s = 512, b = 4, h = 1024, a = 16;
    const auto bytes = [&](int layers, Attention attention) {
      const auto model = builtin("gpt2?layers=" + std::to_string(layers) + "&hidden=1024&sequence=512", b);
      const auto scenario = scenario_on(model, "a100-80gb-1x1", [&](Settings& t) {
        t.precision = Precision::bf16;
        t.attention = attention;
      });
      const auto result = run("manual", scenario);
      auto cost = (*result)->plans->sharding(0).cost;
      return static_cast<double>(cost[MemoryPart::activations] + cost[MemoryPart::copies]);
    };
    for (const Attention attention : {Attention::unfused, Attention::fused}) {
      const double layer = (bytes(6, attention) - bytes(2, attention)) / 4;
      const double scores = attention == Attention::fused ? 0 : 5.0 * double(a * s) / double(h);
      const double formula = double(s * b * h) * (34 + scores);
      QVERIFY2(layer > 0.5 * formula && layer < 1.05 * formula,
               qPrintable(QString("%1 of %2").arg(layer).arg(formula)));
    }
  }

  void refusals_name_the_numbers() {
    const auto scenario = scenario_on(small_gpt(), "v100-16gb-2x8");
    const std::vector<std::pair<std::string, QString>> cases = {
        {"manual:tp=3", "3"},
        {"manual:dp=4:tp=2", "makes 8 devices, not 16"},
        {"manual:tp=16", "8 heads"},
        {"manual:pp=8", "4 layers"},
        {"manual:vp=2", "pp of at least 2"},
        {"manual:pp=2:vp=4:micro-batches=2", "4 layers are fewer than pp=2 stages of vp=4 runs"},
        {"manual:pp=4:vp=2:micro-batches=2", "no multiple of pp=4"},
        {"manual:pp=2:cut=width", "layers, time"},
        {"manual:dp=16:micro-batches=4", "batch of 32"},
        {"manual:zero=4", "0, 1, 2, 3"},
        {"manual:foo=1", "foo"},
        {"manual:tp", "tp"},
        {"manual:tp=99999999999", "tp must be"},
        {"manual:tp=-1", "tp must be"},
        {"manual:dp=8:dp=16", "'dp' twice"},
        {"manual:recompute:recompute", "'recompute' twice"},
        {"manual:recompute:recompute=selective", "'recompute' twice"},
        {"manual:recompute=1", "selective, full"},
        {"manual:sequence-parallel=1", "takes no value"},
        {"manual:zero=3:gather-first", "gather-first needs zero of 1 or 2"},
        {"fsdp:zero=1:zero=2", "'zero' twice"},
        {"megatron:sequence-parallel:sequence-parallel", "'sequence-parallel' twice"}};
    for (const auto& [text, part] : cases) {
      const auto result = run(text, scenario);
      QVERIFY2(!result.has_value(), text.c_str());
      QCOMPARE(result.error().code, ErrorCode::usage);
      const auto message = QString::fromStdString(result.error().what);
      QVERIFY2(message.contains(part), qPrintable(QString::fromStdString(text) + ": " + message));
    }
    const auto other = run("manual:tp=2", scenario_on(test::mlp(), "v100-16gb-1x2"));
    QVERIFY(!other.has_value() && other.error().what.find("no attention") != std::string::npos);
    for (const char* text : {"manual:pp=2", "manual:pp=2:micro-batches=2:recompute", "manual:recompute"}) {
      const auto no_layers = run(text, scenario_on(attends_across(), "v100-16gb-1x2"));
      QVERIFY2(!no_layers.has_value(), text);
      QVERIFY2(no_layers.error().what.find("could be told apart") != std::string::npos,
               no_layers.error().message().c_str());
    }
    QVERIFY(run("manual", scenario_on(attends_across(), "v100-16gb-1x2")).has_value());
    QVERIFY(!run("ft:foo", scenario).has_value());
    QVERIFY(!run("fsdp:zero=0", scenario).has_value());
    QVERIFY(!run("megatron:tp=2", scenario).has_value());
  }

  void parameters_are_read_back() {
    const auto parsed = search::parse_manual("tp=2:pp=2:micro-batches=16:zero=1:recompute:sequence-parallel");
    QVERIFY(parsed.has_value());
    QVERIFY(parsed->data == 0 && parsed->tensor == 2 && parsed->stages == 2 && parsed->micro_batches == 16);
    QVERIFY(parsed->zero == 1 && parsed->recompute && !parsed->selective && parsed->sequence_parallel);
    const auto selective = search::parse_manual("dp=4:recompute=selective");
    QVERIFY(selective.has_value() && selective->data == 4 && selective->recompute && selective->selective);
    const auto nothing = search::parse_manual("");
    QVERIFY(nothing.has_value() && nothing->data == 0 && nothing->tensor == 1 && !nothing->recompute);
  }

  void any_split_on_any_machine_answers_or_says_why() {
    std::mt19937_64 random(11);
    const auto model = builtin("gpt2?layers=4&hidden=512&sequence=16", 64);
    int answers = 0;
    for (int devices = 1; devices <= 64; ++devices) {
      Settings settings;
      settings.batch = model->batch;
      settings.devices = devices <= 8 ? devices : devices / 8 * 8;
      const auto cluster = cluster_preset("v100-16gb-2x8");
      const auto scenario = make_scenario(model, *cluster, "v100-16gb-2x8", settings);
      QVERIFY(scenario.has_value());
      for (int trial = 0; trial < 3; ++trial) {
        const auto pick = [&](std::initializer_list<int> from) {
          return std::to_string(*(from.begin() + static_cast<std::ptrdiff_t>(random() % from.size())));
        };
        std::string text = "manual:tp=" + pick({1, 2, 4, 8}) + ":pp=" + pick({1, 1, 2, 4}) +
                           ":micro-batches=" + pick({1, 2, 4}) + ":zero=" + pick({0, 1, 2, 3});
        text += std::array{"", "", ":recompute", ":recompute=op", ":recompute=selective"}[random() % 5];
        if (random() % 3 == 0) text += ":sequence-parallel";
        const auto result = run(text, *scenario);
        if (!result) {
          QVERIFY2(result.error().code == ErrorCode::usage, qPrintable(why(result)));
          continue;
        }
        ++answers;
        const auto& point = (*result)->points.front();
        QVERIFY(point.memory_bytes > 0 && std::isfinite(point.time_s) && point.compute_s > 0 && point.network_s >= 0);
        QVERIFY(close(point.compute_s + point.network_s, point.time_s));
        QVERIFY(write_result(**result, true).dump().size() > 100);
        const Plan plan = (*result)->plans->sharding(0);
        const auto cost = evaluate_plan(**scenario, plan);
        QVERIFY2(cost.has_value() && cost->memory_bytes() == point.memory_bytes && close(cost->time_s(), point.time_s),
                 text.c_str());
      }
    }
    QVERIFY(answers > 20);
  }

  /// Two stages on two nodes: what passes the boundary goes over the network, every device of a stage sending at once.
  void stages_on_two_nodes_send_over_the_network() {
    const std::string model = "gpt2?layers=2&hidden=128&sequence=16";
    const auto scenario = scenario_on(builtin(model, 8), "v100-16gb-2x4");
    const auto result = run("manual:dp=4:pp=2:micro-batches=2", scenario);
    QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
    const Plan plan = (*result)->plans->sharding(0);
    // Of a micro-batch of 4 samples each device holds one: 16 positions of 128 numbers.
    const double bytes = 16 * 128 * 4;
    const auto& links = scenario->cluster->links[kInterNode];
    // A hop of NCCL takes 14 us where a step of a ring takes 5 in the mean.
    const double expected = links.latency_s * 14 / 5 + bytes / (0.85 * links.bandwidth / 4);
    QCOMPARE(plan.pipeline->send_s.size(), std::size_t(1));
    QVERIFY2(std::abs(plan.pipeline->send_s[0] - expected) < 1e-9 * expected,
             qPrintable(QString("%1 %2").arg(plan.pipeline->send_s[0]).arg(expected)));
  }

  /// A table that the first and the last stage hold: both take part in the sum of its gradients, and with a device for
  /// each stage there is no other. The first stage ends last, so that its part of the sum is in the iteration's time.
  void both_stages_of_a_tied_weight_sum_its_gradient() {
    const auto scenario = scenario_on(builtin("gpt2?layers=4&hidden=64&sequence=16", 8), "v100-16gb-1x2");
    const auto result = run("manual:pp=2:micro-batches=4", scenario);
    QVERIFY2(result.has_value(), qPrintable(why(result)));
    Plan plan = (*result)->plans->sharding(0);
    QCOMPARE(plan.pipeline->tied.size(), std::size_t(1));
    const auto& sum = plan.pipeline->tied[0];
    QCOMPARE(sum.owner, 0);
    QCOMPARE(sum.user, 1);
    const auto& link = scenario->cluster->links[kIntraNode];
    const double bytes = 50257.0 * 64 * 4;
    QVERIFY2(sum.time_s > bytes / link.bandwidth, qPrintable(QString::number(sum.time_s)));
    QCOMPARE(plan.cost[NetworkPart::all_reduce], sum.time_s);
  }

  /// Layers that run again are rebuilt one at a time, in the room of the largest, wherever it stands: here the first,
  /// whose dense block is far wider than the experts behind it. Each channel more of its gate, up and their product is
  /// there once; its weights, their gradients and both moments are held with or without running again.
  void what_runs_again_needs_the_room_of_the_largest_layer() {
    const std::int64_t batch = 16, sequence = 8;
    const auto layers = [&](int width) {
      const auto source = parse_huggingface_config(R"({"model_type": "deepseek_v2", "hidden_size": 64, "vocab_size": 96,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "moe_intermediate_size": 32,
        "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1,
        "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "q_lora_rank": null,
        "intermediate_size": )" + std::to_string(width) +
                                                       "}",
                                                   "config.json");
      if (!source) qFatal("%s", source.error().message().c_str());
      return scenario_on(*(*source)->bind({batch, sequence}), "v100-16gb-1x1");
    };
    for (const char* text : {"manual:recompute", "manual"}) {
      const std::int64_t more = point_of(text, layers(2048)).memory_bytes - point_of(text, layers(1024)).memory_bytes;
      QCOMPARE(more, 1024 * (3 * batch * sequence * 4 + 3 * 64 * (4 + 4 + 8)));
    }
  }

  // What Megatron calls: one collective where a tensor changes its layout, inside a node or across nodes.
  void a_tensor_group_calls_once() {
    int collectives = 0;
    for (const char* text :
         {"manual:tp=2", "manual:tp=4", "manual:tp=8", "manual:tp=16", "manual:tp=8:sequence-parallel",
          "manual:tp=4:zero=3", "manual:tp=4:pp=2:micro-batches=2", "megatron", "fsdp"}) {
      const auto result = run(text, scenario_on(builtin("gpt2?layers=2&hidden=1024&sequence=64", 16), "v100-16gb-2x8"));
      QVERIFY2(result.has_value(), qPrintable(why(result)));
      const Plan plan = (*result)->plans->sharding(0);
      for (const PlanReshard& reshard : plan.reshards)
        for (const ReshardRole role : kReshardRoles) {
          std::uint32_t called = 0;  // axes; data and tensor groups may each have a part
          std::set<ReshardMove> moves;
          for (const ReshardStep& step : reshard.steps(role)) {
            if (step.move == ReshardMove::slice) continue;
            QVERIFY2((called & step.axes) == 0 && moves.insert(step.move).second, text);
            called |= step.axes;
            ++collectives;
          }
        }
    }
    QVERIFY(collectives > 50);
  }

  /// Groups of two do not fit into nodes of three, and a device of each of two nodes is no group either.
  void a_tensor_group_is_a_part_of_a_node_or_whole_nodes() {
    const auto scenario = scenario_on(builtin("gpt2?layers=2&hidden=384&sequence=16", 6), "v100-16gb-2x3");
    for (const char* fits : {"manual:tp=1", "manual:tp=3", "manual:tp=6"})
      QVERIFY2(run(fits, scenario).has_value(), qPrintable(why(run(fits, scenario))));
    const auto across = run("manual:tp=2", scenario);
    QVERIFY(!across.has_value());
    QVERIFY2(why(across).contains("neither equal parts of a node nor whole nodes"), qPrintable(why(across)));
  }
};

QTEST_APPLESS_MAIN(ManualTest)
#include "manual_test.moc"
