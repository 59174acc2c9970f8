// SPDX-License-Identifier: Apache-2.0
// Annotations for somebody's own models in JAX: the tables, what is refused, and, in the environment that
// packaging/engines makes, models written by hand that are laid out by the file on 8 virtual devices: loss, gradients
// and new weights against the model on one device, bytes of arguments and of collectives against the plan's.
#include <QTemporaryDir>
#include <QtTest>

#include "core/export/format.h"
#include "core/export/jax/dimension_axes.h"
#include "core/export/jax/name_rows.h"
#include "core/plan/evaluator.h"
#include "engine.h"
#include "export/jax/by_xla.h"
#include "export/jax/own_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr const char* kFrontier = "ft:micro-batches=1";

}  // namespace

class JaxAnnotationsTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

 private slots:
  void own_models_train_as_the_plan_has_it_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("method");
    QTest::addColumn<double>("place");
    const auto add = [](const char* model, const char* method, double place = 0) {
      QTest::addRow("%s, %s, %g", model, method, place) << model << method << place;
    };
    for (const char* model : {"mlp", "lenet", "gpt2"}) add(model, "data-parallel");
    for (const char* method : {"fsdp:zero=1", "fsdp:zero=3"}) add("mlp", method);
    for (const char* method :
         {"fsdp:zero=2", "manual:tp=4:dp=2:zero=1", "manual:tp=2:dp=4:zero=3", "manual:tp=4:dp=2:sequence-parallel"})
      add("llama", method);
    add("gpt2", "manual:tp=4:dp=2");
    add("gpt2", "manual:tp=4:dp=2:sequence-parallel");
    add("tied llama", "manual:tp=4:dp=2");
    // Along a frontier, by part of its length.
    add("mlp", kFrontier, 0.5);
    add("lenet", kFrontier, 0.5);
    add("gpt2", kFrontier, 0.5);
    for (const double place : {0.0, 0.5}) add("llama", kFrontier, place);
  }
  void own_models_train_as_the_plan_has_it() {
    REQUIRE_ENGINE(python, "jax");
    QFETCH(QString, model);
    QFETCH(QString, method);
    QFETCH(double, place);
    const OwnModel own(folder_, model);
    const auto result = run(method.toStdString(), own.scenario());
    QVERIFY2(result, result ? "" : result.error().message().c_str());
    // From there on the first that annotations can say: prices decide what a frontier has at a place.
    auto point = std::size_t(place * double((*result)->points.size() - 1));
    const auto text_at = [&](std::size_t k) {
      return find_format("jax")->plan(*(*result)->scenario, (*result)->plans->sharding(k));
    };
    while (point + 1 < (*result)->points.size() && !text_at(point)) ++point;
    const Plan plan = (*result)->plans->sharding(point);
    const auto text = text_at(point);
    QVERIFY2(text, text ? "" : text.error().message().c_str());
    const QJsonObject said = own.laid_out(python, *text);
    QVERIFY2(!said.isEmpty() && !said.contains("refused"), QJsonDocument(said).toJson().constData());
    // The model names every tensor that the plan lays out.
    QVERIFY2(said["unnamed"].toObject().isEmpty(), QJsonDocument(said).toJson().constData());
    const auto table = ByXla(*own.scenario(), plan).beside(carried_out(said["collectives"].toArray()));
    // Along a frontier splits differ from operator to operator, and XLA finds ways of its own between them.
    const bool own_ways = method == kFrontier;
    for (const auto& [key, row] : table) {
      if (!row.is_close(row.plan)) qInfo("%s", words_of(key, row).c_str());
      QVERIFY2(own_ways || row.is_close(row.by_xla), words_of(key, row).c_str());
      QVERIFY2(own_ways || row.is_close(row.plan) || !row.reasons.empty(), words_of(key, row).c_str());
    }
    const auto cost = evaluate_plan(*own.scenario(), plan);
    QVERIFY(cost);
    const auto bytes = [&](const char* what) { return std::int64_t(said[what].toDouble()); };
    const auto weights = cost->memory[std::size_t(MemoryPart::parameters)],
               states = cost->memory[std::size_t(MemoryPart::optimizer)];
    // Where a plan's runs of parameters end in pieces that are not full, or the file says what stays whole.
    const std::int64_t slack = model == "gpt2" || model == "lenet" ? (weights + states) / 100 : 0;
    QVERIFY(std::abs(bytes("weight_bytes") - weights) <= slack && std::abs(bytes("state_bytes") - states) <= slack);
    QCOMPARE(bytes("data_bytes"), data_bytes(*own.scenario(), plan));
    QCOMPARE(bytes("argument_bytes"), bytes("weight_bytes") + bytes("state_bytes") + bytes("data_bytes"));
    const QJsonObject apart = said["apart"].toObject();
    for (auto each = apart.begin(); each != apart.end(); ++each)
      QVERIFY2(each->isDouble() && each->toDouble() < 1e-5,
               fmt::format("{} differs by {}", each.key().toStdString(), each->toDouble()).c_str());
  }

  // The file is of one model: what is called otherwise, or shaped otherwise, stops it.
  void another_model_is_refused() {
    REQUIRE_ENGINE(python, "jax");
    const OwnModel own(folder_, "llama");
    const std::string text = own.annotations("manual:tp=4:dp=2");
    const auto refusal = [&](const char* old, const char* now, const std::string& file) {
      const auto said = own.laid_out(python, file, {"--rename", QString("%1=%2").arg(old, now)})["refused"];
      return said.toString().toStdString();
    };
    QCOMPARE(refusal("lm_head.kernel", "head.kernel", text),
             std::string(R"('lm_head\\.kernel' matches 0 parameters of your model, not 1: it is not the plan's)"));
    QCOMPARE(refusal("lm_head.kernel", "model.layers.2.mlp.up_proj.kernel", text),
             std::string(R"('model\\.layers\\.\\d+\\.mlp\\.up_proj\\.kernel' matches 3 parameters of your )"
                         "model, not 2: it is not the plan's"));
    std::string wider = text;
    wider.replace(wider.find("(64, 128), P(None"), 9, "(64, 256)");
    QCOMPARE(refusal("x", "y", wider), std::string("model.layers.0.mlp.gate_proj.kernel has the shape (64, 128), not "
                                                   "(64, 256): it is not the plan's"));
    std::string shorter = text;
    const auto row = shorter.find("    Held(\"lm_head"), end = shorter.find('\n', row) + 1;
    shorter.erase(row, end - row);
    QCOMPARE(refusal("x", "y", shorter),
             std::string("lm_head.kernel is a parameter of your model that the plan does not have"));
  }

  void tables_and_rules() {
    const OwnModel own(folder_, "llama");
    const std::string text = own.annotations("manual:tp=4:dp=2:zero=3");
    for (const char* line :
         {"MESH = {\"y\": 2, \"x\": 2, \"z\": 2}", "    \"tokens\": P(\"y\", None),  # (16, 16)\n",
          "    Held(\"model\\\\.embed_tokens\\\\.embedding\", 1, (64, 64), P((\"x\", \"z\"), None), P((\"x\", \"z\"), "
          "\"y\"), 3),\n",
          "    Held(\"model\\\\.layers\\\\.\\\\d+\\\\.self_attn\\\\.k_proj\\\\.kernel\", 2, (64, 32), P(None, (\"x\", "
          "\"z\")), "
          "P(\"y\", (\"x\", \"z\")), 3),\n",
          // Kernels lead from their first dimension to their last, whatever the model file does.
          "    Held(\"lm_head\\\\.kernel\", 1, (64, 64), P(None, (\"x\", \"z\")), P(\"y\", (\"x\", \"z\")), 3),\n",
          "    Kept(\"model\\\\.layers\\\\.\\\\d+\\\\.mlp\\\\.act\", 2, (\"batch\", \"sequence\", \"channel\"), (16, "
          "16, 128), "
          "(P(\"y\", None, (\"x\", \"z\")),)),\n",
          "    (\"activation_batch\", (\"y\",)),\n", "    (\"activation_embed\", None),\n",
          "    (\"activation_heads\", (\"x\", \"z\")),\n", "    (\"embed\", (\"y\",)),\n",
          "    (\"mlp\", (\"x\", \"z\")),\n", "    (\"vocab\", (\"x\", \"z\")),\n", "    (\"norm\", (\"y\",)),\n"})
      QVERIFY2(text.find(line) != std::string::npos, (line + text).c_str());
    // Positions are split in norms alone: no rule says that, and why not is said.
    const std::string by_sequence = own.annotations("manual:tp=4:dp=2:sequence-parallel");
    QVERIFY2(by_sequence.find("# There are none: 'activation_length' lies over ") != std::string::npos &&
                 by_sequence.find("\nRULES = None\n") != std::string::npos,
             by_sequence.c_str());
    // The sum of a look-up is made first, cut behind that.
    QVERIFY2(by_sequence.find("(16, 16, 64), (P(\"y\", None, None), P(\"y\", (\"x\", \"z\"), None))),\n") !=
                 std::string::npos,
             by_sequence.c_str());
    QVERIFY(
        own.annotations("manual:tp=4:dp=2:zero=2").find("P((\"x\", \"z\"), None), P((\"x\", \"z\"), \"y\"), 2),\n") !=
        std::string::npos);
    QVERIFY(OwnModel(folder_, "mlp").annotations("data-parallel").find("# There are none: dimensions have no names") !=
            std::string::npos);
  }

  void what_no_partition_spec_says_is_refused() {
    const OwnModel llama(folder_, "llama");
    QVERIFY2(llama.annotations("manual:tp=4:dp=2:recompute=op")
                     .find(" runs again in backward, which no PartitionSpec says") != std::string::npos,
             llama.annotations("manual:tp=4:dp=2:recompute=op").c_str());
    // 6 channels and 5 x 5 windows among 8 devices.
    const std::string cut = OwnModel(folder_, "lenet").annotations("fsdp:zero=3");
    QVERIFY2(cut.starts_with("the update of features.conv1.weight (6, 1, 5, 5) of features/conv1 (batch yxz) is shared "
                             "out among 8 devices, and no dimension of it can be divided so"),
             cut.c_str());
    const OwnModel mlp(folder_, "mlp");
    Plan hosted = (*run("data-parallel", mlp.scenario()))->plans->sharding(0);
    for (PlanOperator& op : hosted.operators) op.choice.offload = true;
    const auto refused = find_format("jax")->plan(*mlp.scenario(), hosted);
    QVERIFY(!refused && refused.error().message().starts_with("fc1 (batch yxz) keeps its optimizer state at the host"));
    auto renamed = std::make_shared<Model>(*llama.scenario()->model);
    renamed->source = folder_.filePath("gone.json").toStdString();
    const ScenarioPtr gone = scenario_on(renamed, "v100-16gb-2x4");
    const auto lost = find_format("jax")->plan(*gone, (*run("data-parallel", gone))->plans->sharding(0));
    QVERIFY(!lost && lost.error().message().find("gone.json") != std::string::npos);
  }

  void names_are_only_names() {
    const std::string nasty = "w\"), __import__('os').abort(), (\"\"\"\n\\ \xc3\xa9\xff#";
    auto model = std::make_shared<Model>(*mlp(32));
    model->name = nasty;
    for (auto& op : model->operators) op.name += nasty;
    for (auto& tensor : model->tensors) tensor.name += nasty;
    const ScenarioPtr scenario = scenario_on(model, "v100-16gb-2x4");
    const auto text = find_format("jax")->plan(*scenario, (*run("data-parallel", scenario))->plans->sharding(0));
    QVERIFY2(text, text ? "" : text.error().message().c_str());
    for (const char c : *text) QVERIFY(c == '\n' || (c >= ' ' && c < 0x7f));
    // Behind the remarks, names stand in literals alone.
    QVERIFY(text->find("w\"), __import__", text->find("import functools")) == std::string::npos);
  }

  // What a device updates is a part of what it reads, and every element has one device among those that read it.
  void shares_lie_within_what_is_read() {
    const Mesh mesh = make_mesh(*OwnModel(folder_, "mlp").scenario()->cluster);
    const std::vector<std::int64_t> shape{16, 24};
    const auto elements = [&](const jax::DimensionAxes& axes, int device) {
      std::vector<int> place(3);
      for (int a = 2, rest = device; a >= 0; --a) place[std::size_t(a)] = rest % 2, rest /= 2;
      std::set<std::pair<std::int64_t, std::int64_t>> held;
      for (std::int64_t i = 0; i < shape[0]; ++i)
        for (std::int64_t j = 0; j < shape[1]; ++j) {
          bool mine = true;
          for (std::size_t d = 0; d < 2; ++d) {
            std::int64_t at = d == 0 ? i : j, size = shape[d];
            for (const int a : axes[d]) size /= 2, mine = mine && at / size == place[std::size_t(a)], at %= size;
          }
          if (mine) held.emplace(i, j);
        }
      return held;
    };
    for (const jax::DimensionAxes& read : {jax::DimensionAxes{{1}, {}}, jax::DimensionAxes{{2}, {}},
                                           jax::DimensionAxes{{}, {1, 2}}, jax::DimensionAxes{{2}, {1}}})
      for (const bool first : {false, true}) {
        std::uint32_t cut = 7;
        for (const auto& axes : read)
          for (const int a : axes) cut &= ~(1u << a);
        const auto update = jax::cut_further(mesh, read, shape, cut, {first, !first});
        QVERIFY(update);
        std::map<std::pair<std::int64_t, std::int64_t>, int> holders;
        for (int device = 0; device < 8; ++device) {
          const auto reads = elements(read, device), updates = elements(*update, device);
          QCOMPARE(std::int64_t(updates.size()), jax::elements_on_one(mesh, *update, shape));
          QVERIFY(std::ranges::includes(reads, updates));
          for (const auto& element : updates) ++holders[element];
        }
        QCOMPARE(holders.size(), std::size_t(16 * 24));
        QVERIFY(std::ranges::all_of(holders, [](const auto& entry) { return entry.second == 1; }));
      }
    QVERIFY(!jax::cut_further(mesh, {{}, {}}, {6, 1}, 7, {false, false}));
    QCOMPARE(jax::cut_further(mesh, {{}, {}}, {4, 2}, 7, {false, false}), (jax::DimensionAxes{{0, 1}, {2}}));
  }

  // Patterns match their own names and no others, however the values are mixed.
  void names_become_patterns() {
    using Pairs = std::vector<std::pair<std::string, std::string>>;
    const auto rows = jax::name_rows(Pairs{
        {"a.0.w", "p"}, {"b", "p"}, {"a.1.w", "q"}, {"a.10.w", "p"}, {"c.1.2", "p"}, {"c.2.1", "p"}, {"c.1.1", "q"}});
    std::map<std::string, std::string> values;
    for (const auto& [name, value] : Pairs{{"a.0.w", "p"},
                                           {"b", "p"},
                                           {"a.1.w", "q"},
                                           {"a.10.w", "p"},
                                           {"c.1.2", "p"},
                                           {"c.2.1", "p"},
                                           {"c.1.1", "q"}}) {
      int matches = 0;
      for (const jax::NameRow& row : rows) {
        const QRegularExpression pattern(QRegularExpression::anchoredPattern(row.pattern.c_str()));
        QVERIFY2(pattern.isValid(), row.pattern.c_str());
        if (!pattern.match(name.c_str()).hasMatch()) continue;
        QCOMPARE(row.value, value);
        ++matches;
      }
      QCOMPARE(matches, 1);
    }
    int counted = 0;
    for (const jax::NameRow& row : rows) counted += row.names;
    QCOMPARE(counted, 7);
    QCOMPARE(jax::name_rows(Pairs{{"layer0/w", "p"}, {"layer11/w", "p"}}).front().pattern,
             std::string("layer\\d+\\/w"));
  }
};

QTEST_APPLESS_MAIN(JaxAnnotationsTest)
#include "annotations_test.moc"
