// SPDX-License-Identifier: Apache-2.0
// AccPar, HyPar and One Weird Trick as sharding plans: types become axes, plans cost what the evaluator says, and what
// halves exchange is what the papers' formulas count.
#include <QtTest>

#include "core/plan/evaluator.h"
#include "core/plan_io/plan_json.h"
#include "core/plan_io/plan_read.h"
#include "core/search/accpar/equal_halves.h"
#include "search/partition_cases.h"

using namespace turnpoint;
using namespace turnpoint::test;
using accpar::Type;

namespace {

/// Fully connected layers 8 -> 6 -> 10 -> 2 on four samples (resources/manual/mathematics.md, 4).
ModelPtr three_layers() {
  ModelBuilder b("three", "test", 4, 0);
  TensorId x = b.input("x", {4, 8}, {DimName::batch, DimName::channel}, ElementType::f32);
  x = b.linear("fc1", x, b.parameter("w1", {8, 6}));
  x = b.linear("fc2", x, b.parameter("w2", {6, 10}));
  x = b.linear("fc3", x, b.parameter("w3", {10, 2}));
  return finished(b, x);
}

/// The type by which an axis splits a layer of three_layers().
std::string types_of(const Plan& plan, const Model& model, int axis) {
  std::string types;
  for (const auto& planned : plan.operators) {
    const Operator& op = model.operators[planned.op];
    if (op.kind != OperatorKind::matmul) continue;
    const int loop = planned.split.axis[std::size_t(axis)];
    const DimName name = loop < 0 ? DimName::other : op.dims[std::size_t(loop)].name;
    types += types.empty() ? "" : " ";
    types += name == DimName::batch         ? "I"
             : name == DimName::in_channel  ? "II"
             : name == DimName::out_channel ? "III"
                                            : "none";
  }
  return types;
}

double received_elements(const Plan& plan) {
  double bytes = 0;
  const auto add = [&](const std::vector<ReshardStep>& steps) {
    for (const auto& step : steps) bytes += step.bytes;
  };
  for (const auto& op : plan.operators) add(all_steps(op.parameters));
  for (const auto& reshard : plan.reshards) add(reshard.forward), add(reshard.backward());
  return bytes / 4;
}

const std::vector<std::string> kMethods = {"accpar", "accpar:ratio=exact", "accpar:objective=volume", "hypar", "owt"};

}  // namespace

class EqualHalvesTest : public QObject {
  Q_OBJECT

 private slots:
  // The paper's II, III, II exchange 24 + 24 + 8 elements. Data needs no gradient, so that type III costs the first
  // layer nothing: III, III, II gather 12, half of what it makes, and sum 24 + 8 by the paper's count. A plan scatters
  // the sum of 24, since a half wants only its own 12 of them, and nobody reads the last 8. An all-reduce between two
  // devices brings each the tensor once.
  void what_halves_exchange_is_what_the_paper_counts() {
    const auto scenario = scenario_on(three_layers(), "v100-16gb-1x2", [](Settings& s) {
      s.collectives = Collectives::rings;
      s.bucket_bytes = 0;
    });
    const auto exchanged = [&](const char* method, const char* types, double elements) {
      const Plan plan = answer_of(method, scenario)->plans->sharding(0);
      const std::string found = types_of(plan, *scenario->model, 0);
      QVERIFY2(found == types, (method + (": " + found)).c_str());
      QCOMPARE(received_elements(plan), elements);
    };
    exchanged("accpar:objective=volume", "III III II", 12 + 12);
    exchanged("accpar:objective=volume:programme=published", "III III II", 12 + 12);
    exchanged("data-parallel", "I I I", 48 + 60 + 20);
  }

  void spaces_hold_what_their_papers_have() {
    const auto scenario = scenario_on(builtin("alexnet", 64), "v100-16gb-2x4");
    const Model& model = *scenario->model;
    for (const auto& [method, third] : {std::pair("accpar:ratio=exact", true), {"hypar", false}, {"owt", false}}) {
      const Plan plan = answer_of(method, scenario)->plans->sharding(0);
      bool has_third = false;
      for (const auto& planned : plan.operators) {
        const Operator& op = model.operators[planned.op];
        if (op.kind != OperatorKind::matmul && op.kind != OperatorKind::convolution) continue;
        for (int a = 0; a < plan.mesh.count(); ++a) {
          const int loop = planned.split.axis[std::size_t(a)];
          QVERIFY2(loop >= 0, op.name.c_str());
          const LoopDimension& dim = op.dims[std::size_t(loop)];
          const bool batch = dim.name == DimName::batch, reduction = dim.role == DimRole::reduction;
          has_third |= !batch && !reduction;
          if (std::string(method) == "owt") QCOMPARE(batch, op.kind == OperatorKind::convolution);
        }
      }
      QCOMPARE(has_third, third);
    }
  }

  void plans_cost_what_the_evaluator_says() {
    const auto models = networks_to_cut(7, 12);
    int plans = 0;
    for (const auto& [name, model] : models)
      for (const char* hardware : {"v100-16gb-1x1", "v100-16gb-1x4", "v100-16gb-2x2", "a100-80gb-4x8"})
        for (const std::string& method : kMethods) {
          const auto scenario = scenario_on(model, hardware);
          const auto result = run(method, scenario);
          const std::string what = name + " on " + hardware + " by " + method;
          if (!result) {  // some layer is too small for so many devices
            QVERIFY2(result.error().message().find("smaller than its group") != std::string::npos, what.c_str());
            continue;
          }
          QCOMPARE((*result)->points.size(), std::size_t(1));
          const Plan plan = (*result)->plans->sharding(0);
          const auto cost = evaluate_plan(*scenario, plan);
          QVERIFY2(cost.has_value(), (what + (cost ? "" : cost.error().message())).c_str());
          QVERIFY2(cost->memory_bytes() == (*result)->points[0].memory_bytes &&
                       close(cost->time_s(), (*result)->points[0].time_s),
                   what.c_str());
          ++plans;
        }
    QVERIFY2(plans > 100, qPrintable(QString::number(plans)));
  }

  // Its own choice knows neither latencies nor memory bandwidths; what it is compared with is looked at, too.
  void accpar_is_the_fastest_of_its_kin() {
    int others = 0;
    for (const char* name : {"alexnet", "vgg11", "resnet18", "lenet", "gpt2?layers=2&hidden=128&sequence=32"})
      for (const char* hardware : {"v100-16gb-1x4", "a100-80gb-2x8", "v100-16gb-1x3", "v100-16gb-1x4+a100-80gb-1x4"}) {
        const auto scenario = scenario_on(builtin(name, 96), hardware);
        const ResultPtr best = answer_of("accpar", scenario);
        const double time = best->points.front().time_s;
        for (const char* rival : {"accpar:ratio=exact", "accpar:ratio=equal", "hypar", "owt"})
          if (const auto other = run(rival, scenario))
            QVERIFY2(time <= (*other)->points.front().time_s * (1 + 1e-9),
                     (std::string(name) + hardware + rival).c_str());
        const bool own = time == answer_of("accpar:ratio=exact", scenario)->points.front().time_s;
        const std::string& said = best->explanations.back();
        QVERIFY2(said.find("is the fastest here") != std::string::npos, said.c_str());
        const bool other = said.find("AccPar's own is") == std::string::npos;
        QVERIFY2(own || other, name);
        others += other;
      }
    QVERIFY(others > 0);
  }

  // The paper's halves exchange what they lack. Gathering whole tensors instead, as training engines change a layout
  // with one call, would make AccPar's changing types slower than HyPar's and One Weird Trick's on slow links.
  void slow_links_carry_what_halves_lack() {
    for (const char* name : {"alexnet", "vgg11"}) {
      const auto scenario = scenario_on(builtin(name, 512), "tpu-v3-64x2", [](Settings& s) {
        s.precision = Precision::bf16;
        s.factors.intra_bandwidth = s.factors.inter_bandwidth = 0.0061;  // 8 Gbit/s
      });
      const auto time_s = [&](const char* method) { return answer_of(method, scenario)->points.front().time_s; };
      const double own = time_s("accpar:ratio=exact");
      QVERIFY2(own < 0.9 * std::min(time_s("hypar"), time_s("owt")), name);
    }
  }

  // An operator between layers works on what is there: by channels behind type III, on all of it behind type II.
  void others_follow_their_layer() {
    const auto scenario = scenario_on(mlp(), "v100-16gb-1x2");
    auto layers = *accpar::layers_of(*scenario->model);
    accpar::keep_whole_halves(*scenario->model, false, layers);
    const Mesh mesh = make_mesh(*scenario->cluster);
    const auto relu_splits = [&](Type type) {
      const auto made = accpar::configurations_of(*scenario->model, mesh, false, layers, {{type, Type::batch}});
      for (std::size_t i = 0; i < scenario->model->operators.size(); ++i)
        if (const Operator& op = scenario->model->operators[OperatorId(i)]; op.name == "relu")
          return (*made)[OperatorId(i)].axis[0] < 0
                     ? std::string("nothing")
                     : std::string(to_string(op.dims[std::size_t((*made)[OperatorId(i)].axis[0])].name));
      return std::string("no relu");
    };
    QCOMPARE(relu_splits(Type::batch), std::string("batch"));
    QCOMPARE(relu_splits(Type::reduction), std::string("nothing"));
    QCOMPARE(relu_splits(Type::output), std::string("channel"));
  }

  // Every operator of a plan says which layer it follows, and files bring that back; layers and data follow none.
  void plans_say_which_layer_is_followed() {
    for (const auto& [model, follower, layer] :
         {std::tuple{mlp(), "relu", "fc1"}, std::tuple{attention(64), "softmax", "scores"}}) {
      const auto scenario = scenario_on(model, "v100-16gb-1x4");
      const auto& operators = scenario->model->operators;
      for (const std::string& method : kMethods) {
        const auto result = run(method, scenario);
        if (!result) continue;
        const Plan plan = (*result)->plans->sharding(0);
        const auto read = read_plan(write_plan(*scenario, plan), "p.json", *scenario);
        QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
        int layers = 0;
        for (const PlanOperator& op : plan.operators) {
          QVERIFY(read->operators[op.op.index].follows == op.follows);
          const Operator& what = operators[op.op];
          const auto cut = [&](OperatorId id) {
            const OperatorKind kind = operators[id].kind;
            return kind == OperatorKind::matmul || kind == OperatorKind::embedding;
          };
          layers += !op.follows.valid() && cut(op.op);
          QVERIFY2(!op.follows.valid() || (cut(op.follows) && !cut(op.op)), what.name.c_str());
          if (what.name == follower) QVERIFY(op.follows.valid() && operators[op.follows].name == layer);
        }
        QVERIFY(layers >= 2);
      }
    }
    const auto scenario = scenario_on(mlp(), "v100-16gb-1x4");
    auto broken = write_plan(*scenario, (*run("accpar", scenario))->plans->sharding(0));
    for (auto& op : broken["operators"])
      if (op.contains("follows")) op["follows"] = 1000;
    const auto read = read_plan(broken, "p.json", *scenario);
    QVERIFY(!read && read.error().message().find("follows 1000") != std::string::npos);
  }

  // 6 channels are halved once.
  void what_cannot_be_halved_is_left_to_other_types() {
    const auto scenario = scenario_on(three_layers(), "v100-16gb-1x4");
    auto layers = *accpar::layers_of(*scenario->model);
    accpar::keep_whole_halves(*scenario->model, false, layers);
    QCOMPARE(layers.graph.layers[0].units(Type::batch), 4.0);
    QCOMPARE(layers.graph.layers[0].units(Type::reduction), 8.0);
    QCOMPARE(layers.graph.layers[0].units(Type::output), 2.0);
    QCOMPARE(answer_of("accpar", scenario)->points.size(), std::size_t(1));
  }

  void bad_scenarios() {
    const auto refusal = [](const char* hardware) {
      return (*find_method("accpar"))->refuses(*scenario_on(mlp(), hardware));
    };
    QVERIFY(refusal("v100-16gb-2x8").empty());
    QVERIFY(refusal("v100-16gb-1x6").empty());
    QVERIFY(!make_searcher(**find_method("accpar"), "objective=fun").has_value());
    // Data parallelism needs a sample a device, AccPar does not; beyond all lengths nothing is left to cut.
    const auto small = scenario_on(three_layers(), "v100-16gb-64x8");
    const auto result = run("accpar", small);
    QVERIFY(!result.has_value());
    QVERIFY2(result.error().message().find("layer 'fc") != std::string::npos, result.error().message().c_str());
  }

  // One sentence: which model and method, which layer, and what of it is too little. Twelve heads are halved twice.
  void who_is_too_small_is_told() {
    const auto message = [](const std::string& method, const ScenarioPtr& scenario) {
      const auto result = run(method, scenario);
      return QString::fromStdString(result ? "" : result.error().message());
    };
    const auto gpt = scenario_on(builtin("gpt2?layers=2&sequence=32", 64), "v100-16gb-1x8");
    QCOMPARE(message("owt", gpt),
             QStringLiteral("builtin:gpt2?layers=2&sequence=32: method owt: layer 'layer0/attention/out' is smaller "
                            "than its group of devices: its reduction can be halved twice, and 8 devices take 3 cuts "
                            "one after the other "
                            "(use fewer devices)"));
    QVERIFY(message("owt", scenario_on(builtin("gpt2?layers=2&sequence=32", 64), "v100-16gb-1x4")).isEmpty());
    const QString odd = message("hypar", scenario_on(builtin("lenet", 1), "v100-16gb-1x12"));
    QVERIFY2(odd.startsWith("builtin:lenet: method hypar: layer 'features/conv1' is smaller") &&
                 odd.contains("its batch and its reduction cannot be halved, and 12 devices take 4 cuts one after the "
                              "other (use fewer devices or a "
                              "larger batch)"),
             qPrintable(odd));
  }
};

QTEST_APPLESS_MAIN(EqualHalvesTest)
#include "equal_halves_test.moc"
