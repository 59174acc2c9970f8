// SPDX-License-Identifier: Apache-2.0
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/export/plan_graph.h"
#include "core/export/writers.h"
#include "core/plan/evaluator.h"
#include "core/plan_io/escape.h"
#include "core/plan_io/plan_json.h"
#include "plan/hand_plan.h"
#include "plan_io/schema_check.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

const char* const kNastyName = "a,\"b\"\\ <c>&'d\xff\x01\nend";

// The chain model with every name full of characters that mean something to some format.
ScenarioPtr nasty_scenario() {
  auto model = std::make_shared<Model>(*mlp());
  model->name = kNastyName;
  for (auto& op : model->operators) op.name += kNastyName, op.scope = kNastyName;
  for (auto& tensor : model->tensors) tensor.name += kNastyName;
  return scenario_on(model, "v100-16gb-2x8");
}

// RFC 4180.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, {std::string()});
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& field = rows.back().back();
    if (quoted) {
      if (text[i] != '"')
        field += text[i];
      else if (i + 1 < text.size() && text[i + 1] == '"')
        field += text[++i];
      else
        quoted = false;
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == ',') {
      rows.back().emplace_back();
    } else if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
      if (i + 1 < text.size()) rows.push_back({std::string()});
    } else {
      field += text[i];
    }
  }
  return rows;
}

std::size_t count_elements(const std::string& svg, const char* name, QString* error) {
  QXmlStreamReader reader(QByteArray::fromStdString(svg));
  std::size_t count = 0;
  while (!reader.atEnd())
    if (reader.readNext() == QXmlStreamReader::StartElement && reader.name() == QLatin1String(name)) ++count;
  *error = reader.hasError() ? reader.errorString() : QString();
  return count;
}

}  // namespace

class WritersTest : public QObject {
  Q_OBJECT

 private slots:
  // The plans these tests write are real ones.
  void hand_made_plans_are_legal() {
    const auto scenario = scenario_on(mlp(), "v100-16gb-2x8");
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const Plan plan = hand_plan(*scenario, seed);
      const auto cost = evaluate_plan(*scenario, plan);
      QVERIFY2(cost.has_value(), cost ? "" : cost.error().message().c_str());
      QCOMPARE(cost->memory_bytes(), plan.cost.memory_bytes());
      QVERIFY(std::abs(cost->time_s() - plan.cost.time_s()) <= 1e-9 * plan.cost.time_s());
    }
  }

  void plan_json_follows_its_schema_and_adds_up() {
    SchemaCheck schemas(TURNPOINT_SOURCE_DIR "/resources/schemas");
    for (const auto& scenario :
         {scenario_on(mlp(), "v100-16gb-2x8"), nasty_scenario(), scenario_on(mlp(), "v100-16gb-1x1")}) {
      QVERIFY(scenario);
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Plan plan = hand_plan(*scenario, seed);
        const auto document = nlohmann::json::parse(write_plan(*scenario, plan).dump());
        QCOMPARE(schemas.check("plan@1", document), std::string());
        std::int64_t memory = 0;
        double time = 0;
        for (const auto& op : document["operators"]) {
          QVERIFY(op["configuration"].get<std::size_t>() < document["configurations"].size());
          memory += op["memory_bytes"].get<std::int64_t>();
          time += op["compute_s"].get<double>() + op["network_s"].get<double>();
        }
        for (const auto& reshard : document["reshards"]) {
          memory += reshard["memory_bytes"].get<std::int64_t>();
          time += reshard["time_s"].get<double>();
          double steps = 0;
          for (const char* key : {"steps", "backward_steps"})
            for (const auto& step : reshard[key]) steps += step["time_s"].get<double>();
          QVERIFY(std::abs(steps - reshard["time_s"].get<double>()) <= 1e-9 * steps);
          if (!reshard["steps"].empty()) QCOMPARE(reshard["steps"].back()["layout"]["dims"], reshard["to"]["dims"]);
        }
        QCOMPARE(memory, plan.cost.memory_bytes());
        QVERIFY(std::abs(time - plan.cost.time_s()) <= 1e-9 * plan.cost.time_s());
      }
    }
  }

  void plan_json_by_hand() {
    const auto scenario = scenario_on(mlp(), "v100-16gb-2x2");
    Plan plan = hand_plan(*scenario, 3);
    const Operator& fc1 = scenario->model->operators[OperatorId(1)];
    QCOMPARE(fc1.name, std::string("fc1"));
    plan.operators[1].split = Configuration();
    plan.operators[1].split.axis[0] = 0;  // batch on y, the node axis; x repeats
    const auto document = write_plan(*scenario, plan);
    QCOMPARE(document["mesh"],
             nlohmann::json::parse(
                 R"([{"axis":"y","size":2,"level":"inter-node"},{"axis":"x","size":2,"level":"intra-node"}])"));
    const auto& configuration =
        document["configurations"][document["operators"][1]["configuration"].get<std::size_t>()];
    QCOMPARE(
        configuration,
        nlohmann::json::parse(
            R"({"split":{"batch":["y"]},"repeat":["x"],"recompute":false,"offload":false,"update":"replicated"})"));
  }

  void csv_of_operators_adds_up() {
    for (const auto& scenario : {scenario_on(mlp(), "v100-16gb-2x8"), nasty_scenario()}) {
      const Plan plan = hand_plan(*scenario, 5);
      const auto rows = parse_csv(write_plan_csv(*scenario, plan));
      QCOMPARE(rows.size(), plan.operators.size() + 1);
      double bytes = 0, seconds = 0;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        QCOMPARE(rows[r].size(), rows[0].size());
        if (r > 0) QCOMPARE(rows[r][0], valid_utf8(scenario->model->operators[OperatorId(r - 1)].name));
        for (std::size_t c = 5; r > 0 && c < rows[r].size(); ++c)
          (rows[0][c].ends_with("_bytes") ? bytes : seconds) += std::stod(rows[r][c]);
      }
      QCOMPARE(bytes, static_cast<double>(plan.cost.memory_bytes()));
      QVERIFY(std::abs(seconds - plan.cost.time_s()) <= 1e-9 * seconds);
    }
  }

  // One statement a line, every string quoted the way Graphviz reads it.
  void dot_is_well_formed_and_complete() {
    const QString quoted = R"(\"(?:[^\"\\]|\\.)*\")",
                  attributes = R"(\[[a-z]+=(?:Q|[a-z0-9.]+)(?:, [a-z]+=(?:Q|[a-z0-9.]+))*\])";
    const auto pattern = [&](QString text) {
      return QRegularExpression("^" + text.replace("A", attributes).replace("Q", quoted) + "$",
                                QRegularExpression::DotMatchesEverythingOption);
    };
    const QRegularExpression head = pattern("digraph Q \\{"), node = pattern("  n\\d+ A;"),
                             edge = pattern("  n\\d+ -> n\\d+ A;"), defaults = pattern("  (node|edge) A;");
    const auto scenario = nasty_scenario();
    const Plan plan = hand_plan(*scenario, 5);
    const auto lines = QString::fromStdString(write_plan_dot(*scenario, plan)).split('\n');
    std::size_t nodes = 0, edges = 0;
    QVERIFY2(head.match(lines.front()).hasMatch(), qPrintable(lines.front()));
    for (int i = 1; i + 2 < lines.size(); ++i) {
      const bool is_node = node.match(lines[i]).hasMatch(), is_edge = edge.match(lines[i]).hasMatch();
      QVERIFY2(is_node || is_edge || defaults.match(lines[i]).hasMatch(), qPrintable(lines[i]));
      nodes += is_node;
      edges += is_edge;
    }
    QCOMPARE(lines[lines.size() - 2], QString("}"));
    QCOMPARE(nodes, plan.operators.size());
    QCOMPARE(edges, make_plan_graph(*scenario, plan).edges.size());
  }

  void svg_is_well_formed_and_complete() {
    for (const auto& scenario : {scenario_on(mlp(), "v100-16gb-2x8"), nasty_scenario()}) {
      const Plan plan = hand_plan(*scenario, 5);
      QString error;
      const std::string svg = write_plan_svg(*scenario, plan);
      QCOMPARE(count_elements(svg, "g", &error), plan.operators.size());
      QCOMPARE(error, QString());
      QCOMPARE(count_elements(svg, "path", &error), make_plan_graph(*scenario, plan).edges.size());
      QVERIFY(svg.find("nan") == std::string::npos && svg.find("inf") == std::string::npos);
    }
  }
  void svg_of_shared_tensors_and_recurring_edges() {
    for (const auto& model : {attention(), residual(), convolution()}) {
      const auto scenario = scenario_on(model, "v100-16gb-1x4");
      QString error;
      count_elements(write_plan_svg(*scenario, hand_plan(*scenario, 2)), "g", &error);
      QCOMPARE(error, QString());
    }
  }

  void colours_of_many_configurations() {
    const auto scenario = scenario_on(attention(), "v100-16gb-2x8");
    const PlanGraph graph = make_plan_graph(*scenario, hand_plan(*scenario, 9));
    std::set<std::string> words;
    for (const auto& node : graph.nodes) words.insert(node.configuration);
    QVERIFY(words.size() > 8);
    QCOMPARE(graph.legend.size(), std::size_t(8));
    QCOMPARE(graph.legend.back().configuration, std::string("other"));
    std::size_t operators = 0;
    double least_named = INFINITY, most_other = 0;
    std::map<std::string, double> time;
    for (const auto& node : graph.nodes) time[node.configuration] += node.cost.time_s();
    for (const auto& node : graph.nodes) {
      if (node.colour == 7)
        most_other = std::max(most_other, time[node.configuration]);
      else
        least_named = std::min(least_named, time[node.configuration]);
    }
    QVERIFY(most_other <= least_named);
    for (const auto& entry : graph.legend) operators += entry.operators;
    QCOMPARE(operators, graph.nodes.size());
  }

  void escapes() {
    QCOMPARE(valid_utf8("a\u00e9\u20ac\U0001F600"), std::string("a\u00e9\u20ac\U0001F600"));
    const std::string bad = "\xEF\xBF\xBD";
    QCOMPARE(valid_utf8("\xc3"), bad);
    QCOMPARE(valid_utf8("\xc0\x80"), bad + bad);            // overlong
    QCOMPARE(valid_utf8("\xed\xa0\x80"), bad + bad + bad);  // surrogate
    QCOMPARE(valid_utf8("\xf5\x80\x80\x80"), bad + bad + bad + bad);
    QCOMPARE(escape_xml("<a href=\"x\">'&'\x01</a>"),
             "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;" + bad + "&lt;/a&gt;");
    QCOMPARE(escape_xml("\xEF\xBF\xBF"), bad);
    QCOMPARE(escape_dot("a\"b\\c\nd\t"), std::string("a\\\"b\\\\c\\nd "));
    QCOMPARE(csv_field("plain"), std::string("plain"));
    QCOMPARE(csv_field("a,\"b\"\n"), std::string("\"a,\"\"b\"\"\n\""));
  }
};

QTEST_APPLESS_MAIN(WritersTest)
#include "writers_test.moc"
