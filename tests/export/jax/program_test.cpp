// SPDX-License-Identifier: Apache-2.0
// Plans as programs for JAX, proven by JAX: every collective of the compiled program is one of the plan's, with its
// groups and bytes; arguments are what the plan says of weights and optimizer, to the byte; a step computes what the
// same network in one piece does.
#include <QJsonArray>
#include <QTemporaryDir>
#include <QtTest>
#include <cmath>

#include "core/export/format.h"
#include "core/plan/evaluator.h"
#include "core/plan_io/escape.h"
#include "engine.h"
#include "export/jax/collectives.h"
#include "plan/hand_plan.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

const ExportFormat& program_format() { return *find_format("jax:explicit"); }

ModelPtr of_config(const QTemporaryDir& folder, const QByteArray& config, std::int64_t batch, std::int64_t sequence) {
  const QString path = folder.filePath("config.json");
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(config) != config.size()) qFatal("cannot write a config");
  file.close();
  const auto source = open_model(path.toStdString());
  if (!source) qFatal("%s", source.error().message().c_str());
  const auto model = (*source)->bind({batch, sequence});
  if (!model) qFatal("%s", model.error().message().c_str());
  return *model;
}

ModelPtr model_of(const QTemporaryDir& folder, const QString& name) {
  if (name == "mlp") return mlp(32);
  if (name == "residual") return residual(32);
  if (name == "attention") return attention(16, 8);
  if (name == "gpt2")
    return of_config(folder,
                     R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 64,
                         "n_positions": 32, "resid_pdrop": 0.1})",
                     16, 16);
  if (name == "gpt2 of two samples")  // and one head, so that positions are split
    return of_config(folder,
                     R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 32, "n_head": 1, "vocab_size": 64,
                         "n_positions": 64})",
                     2, 64);
  if (name == "llama")
    return of_config(folder,
                     R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
                         "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 64,
                         "max_position_embeddings": 64})",
                     16, 16);
  return builtin(name.toStdString(), 16);
}

/// The plan with the update of every operator's parameters shared out by chance.
Plan cut_by_chance(const Scenario& scenario, Plan plan, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const ReshardingModel resharding(plan.mesh, CollectiveModel(*scenario.cluster, scenario.settings.factors), 1e12);
  const TensorUses uses = analyse_tensor_uses(*scenario.model);
  const OperatorCostModel costs(scenario, uses, resharding);
  for (PlanOperator& op : plan.operators) {
    const auto groups =
        sharing_groups(plan.mesh, parameter_groups(*scenario.model, uses, op.op, op.split, plan.mesh.count()));
    if (groups.empty()) continue;
    constexpr Update kUpdates[] = {Update::sharded_state, Update::sharded, Update::sharded_weights};
    op.choice.update = kUpdates[random() % 3];
    op.choice.update_axes = groups[random() % groups.size()];
    op.choice.whole_rows = op.choice.update == Update::sharded_weights && random() % 2 == 0;
    auto cost = costs.cost(op.op, op.split, op.choice, true);
    op.cost = cost.breakdown;
    op.parameters = std::move(cost.parameters);
  }
  return plan;
}

std::string export_of(const Scenario& scenario, const Plan& plan) {
  const auto text = program_format().plan(scenario, plan);
  return text ? *text : "refused: " + text.error().message();
}

QString write_program(const QTemporaryDir& folder, const std::string& text) {
  const QString path = folder.filePath("exported.py");
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(text.data(), qint64(text.size())) != qint64(text.size()))
    qFatal("cannot write a program");
  return path;
}

QString runner() { return QString(TURNPOINT_SOURCE_DIR) + "/tests/export/jax/run_program.py"; }

}  // namespace

class JaxProgramTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

  void prove(const QString& python, const Scenario& scenario, const Plan& plan) {
    const std::string text = export_of(scenario, plan);
    QVERIFY2(!text.starts_with("refused"), text.c_str());
    const EngineRun run =
        run_engine(python, {runner(), write_program(folder_, text), QString::number(plan.mesh.devices())});
    QVERIFY2(run.code == 0, run.err.right(2000).constData());
    const QJsonObject said = run.json();

    const auto wanted = planned(scenario, plan), found = carried_out(said["collectives"].toArray());
    for (std::size_t i = 0; i < std::max(wanted.size(), found.size()); ++i) {
      const std::string want = i < wanted.size() ? words_of(wanted[i]) : "nothing",
                        have = i < found.size() ? words_of(found[i]) : "nothing";
      QVERIFY2(i < wanted.size() && i < found.size() && wanted[i].kind == found[i].kind &&
                   wanted[i].groups == found[i].groups,
               (want + " is planned, carried out " + have).c_str());
      // What fills up the last piece travels beside what the plan counts.
      QVERIFY2(found[i].bytes >= wanted[i].bytes - 1e-6 && found[i].bytes <= wanted[i].bytes + wanted[i].slack + 1e-6,
               (want + " is planned, carried out " + have).c_str());
    }
    const auto cost = evaluate_plan(scenario, plan);
    QVERIFY2(cost, cost ? "" : cost.error().message().c_str());
    const auto memory = cost->memory;
    const auto weights = memory[std::size_t(MemoryPart::parameters)],
               states = memory[std::size_t(MemoryPart::optimizer)];
    QCOMPARE(std::int64_t(said["weight_bytes"].toDouble()), weights);
    QCOMPARE(std::int64_t(said["state_bytes"].toDouble()), states);
    // The rate, and with a dropout the number of the step.
    const std::int64_t scalars = text.find("kept(") == text.rfind("kept(") ? 4 : 8;
    QCOMPARE(std::int64_t(said["argument_bytes"].toDouble()), weights + states + data_bytes(scenario, plan) + scalars);
    const QJsonObject apart = said["apart"].toObject();
    QVERIFY(apart.size() > 1 && apart.contains("loss"));
    for (auto each = apart.begin(); each != apart.end(); ++each)
      QVERIFY2(each->isDouble() && each->toDouble() < 1e-5,
               fmt::format("{} differs by {}", each.key().toStdString(), each->toDouble()).c_str());
  }

 private slots:
  void methods_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("method");
    QTest::addColumn<QString>("optimizer");
    const auto add = [](const char* model, const char* method, const char* optimizer = "adam") {
      QTest::newRow(qPrintable(QString("%1, %2, %3").arg(model, method, optimizer))) << model << method << optimizer;
    };
    for (const char* optimizer : {"sgd", "momentum", "adam"}) add("mlp", "data-parallel", optimizer);
    add("lenet", "fsdp:zero=3");
    for (const char* model : {"gpt2", "llama"}) {
      for (const char* method : {"fsdp:zero=1", "fsdp:zero=3", "manual:tp=4:dp=2"}) add(model, method);
      add(model, "manual:tp=4:dp=2:sequence-parallel");
    }
  }
  void methods() {
    REQUIRE_ENGINE(python, "jax");
    QFETCH(QString, model);
    QFETCH(QString, method);
    QFETCH(QString, optimizer);
    const auto scenario = scenario_on(model_of(folder_, model), "v100-16gb-2x4", [&](Settings& settings) {
      settings.optimizer = optimizer == "sgd"        ? Optimizer::sgd
                           : optimizer == "momentum" ? Optimizer::momentum
                                                     : Optimizer::adam;
    });
    const auto result = run(method.toStdString(), scenario);
    QVERIFY2(result, result ? "" : result.error().message().c_str());
    prove(python, *(*result)->scenario, (*result)->plans->sharding(0));
  }

  // Along a frontier: the least memory, the fastest, and one between.
  void frontiers_data() {
    QTest::addColumn<QString>("model");
    for (const char* model : {"mlp", "residual", "attention", "gpt2", "gpt2 of two samples", "llama", "lenet"})
      QTest::newRow(model) << model;
  }
  void frontiers() {
    REQUIRE_ENGINE(python, "jax");
    QFETCH(QString, model);
    const auto scenario =
        scenario_on(model_of(folder_, model), "v100-16gb-2x4", [](Settings& settings) { settings.offload = false; });
    const auto result = run("ft:micro-batches=1", scenario);
    QVERIFY(result);
    const std::size_t points = (*result)->points.size();
    std::set<std::size_t> chosen;
    for (std::size_t i = 0; i < 3; ++i) chosen.insert(i * (points - 1) / 2);
    if (model == "gpt2 of two samples")
      QVERIFY(export_of(*(*result)->scenario, (*result)->plans->sharding(0)).find("first_query=start(") !=
              std::string::npos);
    for (const std::size_t point : chosen) {
      prove(python, *(*result)->scenario, (*result)->plans->sharding(point));
      if (QTest::currentTestFailed()) return qWarning("point %zu of %zu", point, points);
    }
  }

  // Any configurations beside one another: all kinds of collectives, copies kept before, after and on both sides.
  void plans_put_together_by_chance() {
    REQUIRE_ENGINE(python, "jax");
    const auto scenario = scenario_on(mlp(64), "v100-16gb-2x4");
    std::set<std::string> kinds;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Plan plan = hand_plan(*scenario, seed);
      if (seed >= 4) plan = cut_by_chance(*scenario, std::move(plan), seed);
      for (const Listed& listed : planned(*scenario, plan)) kinds.insert(listed.kind);
      prove(python, *scenario, plan);
      if (QTest::currentTestFailed()) return qWarning("seed %d", int(seed));
    }
    QVERIFY2(kinds.size() >= 4, "the plans have few kinds of collectives");
  }

  // A weight that two products share, one of them repeated along axes on which the other's gradient is a sum: what is
  // whole there counts once.
  void shared_weights_count_once() {
    REQUIRE_ENGINE(python, "jax");
    ModelBuilder b("tied", "test", 32, 0);
    const TensorId w = b.parameter("w", {16, 32});
    TensorId x = b.input("x", {32, 16}, {DimName::batch, DimName::channel}, ElementType::f32);
    x = b.linear("fc1", x, w);
    const std::array one{x};
    x = b.elementwise("relu", "Relu", one, {1, true, {}});
    x = b.linear("fc2", x, b.tied_parameter("w_again", w, {16, 32}), {}, true);
    const auto scenario = scenario_on(finished(b, x), "v100-16gb-2x4");
    int proven = 0;
    for (std::uint64_t seed = 0; seed < 5000 && proven < 2; ++seed) {
      const Plan plan = hand_plan(*scenario, seed);
      if (export_of(*scenario, plan).find("once(gw") == std::string::npos) continue;
      prove(python, *scenario, plan);
      if (QTest::currentTestFailed()) return qWarning("seed %d", int(seed));
      ++proven;
    }
    QCOMPARE(proven, 2);
  }

  // Names of operators and tensors never become code: they come back from the file as they were.
  void names_are_only_names() {
    const std::string nasty = "w\"), __import__('os').abort(), (\"\"\"\n\\ \xc3\xa9\xf0\x9f\x98\x80\xff#";
    auto model = std::make_shared<Model>(*mlp(32));
    model->name = nasty;
    for (auto& op : model->operators) op.name += nasty, op.scope = nasty;
    for (auto& tensor : model->tensors) tensor.name += nasty;
    const auto scenario = scenario_on(model, "v100-16gb-2x4");
    const std::string text = export_of(*scenario, hand_plan(*scenario, 1));
    QVERIFY2(!text.starts_with("refused"), text.c_str());
    for (const char c : text) QVERIFY(c == '\n' || (c >= ' ' && c < 0x7f));
    QVERIFY(text.find("w\"), __import__") == std::string::npos);
    REQUIRE_ENGINE(python, "jax");
    const EngineRun run = run_engine(python, {runner(), write_program(folder_, text), "8", "--names"});
    QVERIFY2(run.code == 0, run.err.right(2000).constData());
    QStringList wanted, found;
    for (const char* name : {"w1", "b1", "w2", "b2"})
      wanted << QString::fromStdString(valid_utf8(std::string(name) + nasty));
    for (const auto& name : run.json()["names"].toArray()) found << name.toString();
    QCOMPARE(found, wanted);
  }

  // What the test itself reads of compiled programs, by hand.
  void groups_are_read_in_three_spellings() {
    REQUIRE_ENGINE(python, "jax");
    for (const auto& [line, groups] : std::map<QString, QString>{
             {"replica_groups={{0,1},{2,3}}, x={}", "[[0, 1], [2, 3]]"},
             {"replica_groups=[4,2]<=[8], x={}", "[[0, 1], [2, 3], [4, 5], [6, 7]]"},
             {"replica_groups=[4,2]<=[2,4]T(1,0), x={}", "[[0, 4], [1, 5], [2, 6], [3, 7]]"},
             {"replica_groups=mesh['axis_0'=2,'axis_1'=4] {'axis_0'}, x={}", "[[0, 4], [1, 5], [2, 6], [3, 7]]"},
             {"replica_groups=mesh['axis_0'=4,'axis_1'=1,'axis_2'=2], device_ids=([2,4]T(1,0)) {'axis_0'}, x={}",
              "[[0, 1, 2, 3], [4, 5, 6, 7]]"}}) {
      const EngineRun run = run_engine(python, {runner(), line, "8", "--groups"});
      QCOMPARE(QString(run.out).trimmed(), groups);
    }
  }

  // An operator or a setting without lines is refused in one sentence that names it.
  void what_has_no_lines_is_refused() {
    const auto refusal = [](const char* model, const char* method, const std::function<void(Settings&)>& change = {}) {
      const auto scenario = scenario_on(builtin(model, 16), "v100-16gb-2x4", change);
      const auto result = run(method, scenario);
      if (!result) return result.error().message();
      const auto text = program_format().plan(*(*result)->scenario, (*result)->plans->sharding(0));
      return text ? std::string("written") : text.error().message();
    };
    for (const auto& [model, words] : std::map<const char*, std::vector<const char*>>{
             {"lstm-lm?hidden=64", {"(recurrent)", "'LSTM' has no lines yet"}},
             {"resnet18", {"(batch-normalisation)", "'BatchNormalization' has no lines yet"}},
             {"alexnet", {"(convolution)", "holds no strides"}},
             {"mixtral-8x7b?layers=1", {"(softmax)", "'SoftmaxTopK' has no lines yet"}}}) {
      const std::string said = refusal(model, "data-parallel");
      for (const char* word : words) QVERIFY2(said.find(word) != std::string::npos, said.c_str());
      QVERIFY2(said.find("operator '") != std::string::npos, said.c_str());
    }
    QVERIFY(refusal("lenet", "data-parallel", [](Settings& s) {
              s.precision = Precision::bf16;
            }).find("precision bf16 has no lines yet") != std::string::npos);
    QVERIFY(refusal("lenet", "data-parallel", [](Settings& s) {
              s.optimizer = Optimizer::lamb;
            }).find("the optimizer lamb has no lines yet") != std::string::npos);
    QCOMPARE(refusal("lenet", "data-parallel"), std::string("written"));
    const auto scenario = scenario_on(mlp(32), "v100-16gb-2x4");
    Plan plan = hand_plan(*scenario, 1);
    plan.reshards.clear();
    const auto broken = program_format().plan(*scenario, plan);
    QVERIFY(!broken && broken.error().code == ErrorCode::bad_input);
    plan = hand_plan(*scenario, 1);
    for (auto& op : plan.operators) op.choice.offload = true;
    const auto hosted = program_format().plan(*scenario, plan);
    QVERIFY(!hosted && hosted.error().message().find("keeps its optimizer state at the host") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(JaxProgramTest)
#include "program_test.moc"
