// SPDX-License-Identifier: Apache-2.0
// Reading, writing and checking frontier problems, and the plain frontier algebra (F1 of the paper notes).
#include "core/frontier/problem.h"

#include <QTest>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/frontier/solver.h"
#include "frontier/problems.h"

using namespace turnpoint;
using namespace turnpoint::frontier;
using namespace turnpoint::frontier::test;

namespace {

std::string message_of(const std::string& text) {
  const auto document = parse_json(text, "p.json");
  if (!document) return document.error().message();
  const auto problem = read_problem(*document, "p.json");
  return problem ? "" : problem.error().message();
}

std::string with_nodes(const std::string& nodes, const std::string& edges = "[]") {
  std::string text = R"({"format": "turnpoint/frontier-problem@1", "nodes": )";
  return text.append(nodes).append(R"(, "edges": )").append(edges).append("}");
}

const std::string kTwo = R"([{"name": "a", "costs": [[4, 1.0], [2, 3.0]]}, {"name": "b", "costs": [[1, 5.0]]}])";

}  // namespace

class ProblemTest : public QObject {
  Q_OBJECT

 private slots:
  void reduces_as_the_paper_example() {
    const CostList points{{10, 5}, {10, 3}, {12, 3}, {8, 9}, {20, 1}, {9, 9}, {15, 2}};
    QVERIFY(reduce(points) == (CostList{{8, 9}, {10, 3}, {15, 2}, {20, 1}}));
  }

  void algebra() {
    const CostList a{{1, 5}, {3, 2}}, b{{0, 1}, {2, 0}};
    QVERIFY(product(a, b) == (CostList{{1, 6}, {3, 3}, {5, 2}}));
    QVERIFY(unite(a, b) == (CostList{{0, 1}, {2, 0}}));
    QVERIFY(product(a, {}).empty());
    QVERIFY(is_frontier(a));
    QVERIFY(!is_frontier({{1, 5}, {3, 5}}));
    QCOMPARE(time_at(a, 2), 5.0);
    QVERIFY(time_at(a, 0) == std::numeric_limits<double>::infinity());
  }

  void reads_the_documented_example() {
    const auto document = parse_json(
        R"({"format": "turnpoint/frontier-problem@1",
            "nodes": [{"name": "a", "costs": [[4, 1.0], [2, 3.0]]}, {"name": "b", "costs": [[[1, 5.0], [3, 2.0]]]}],
            "edges": [{"from": 0, "to": 1, "costs": [[[0, 0.0]], [[1, 2.0]]]}], "note": "unknown keys are ignored"})",
        "p.json");
    const auto problem = read_problem(*document, "p.json");
    QVERIFY2(problem.has_value(), problem ? "" : problem.error().message().c_str());
    QCOMPARE(problem->nodes.size(), std::size_t(2));
    QCOMPARE(problem->nodes[1].costs[0].size(), std::size_t(2));
    QVERIFY(problem->edges[0].costs[1][0] == (CostPoint{1, 2.0}));
    RunContext context;
    context.threads = 1;
    const auto answer = Solver().solve(*problem, {}, context);
    QVERIFY(answer.has_value());
    QVERIFY(costs_of(*answer) == brute_force(*problem));
    const auto written = write_answer(*answer, 0.5);
    QVERIFY(written["format"] == "turnpoint/frontier@1");
    QVERIFY(written["exact"] == true && written["gap"] == 0.0 && written["search_s"] == 0.5);
    QVERIFY(!written.contains("lower_bound"));
    QCOMPARE(written["points"].size(), answer->points.size());
    QVERIFY(written["points"][0]["configs"].size() == 2);
  }

  void round_trip() {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      ProblemShape shape;
      shape.integer_times = false;
      const Problem problem = random_problem(seed, 5, shape, static_cast<std::uint32_t>(seed % 9));
      const auto again = read_problem(nlohmann::json::parse(write_problem(problem).dump()), "x");
      QVERIFY2(again.has_value(), again ? "" : again.error().message().c_str());
      QVERIFY(again->nodes.size() == problem.nodes.size() && again->edges.size() == problem.edges.size());
      for (std::size_t i = 0; i < problem.nodes.size(); ++i) QVERIFY(again->nodes[i].costs == problem.nodes[i].costs);
      for (std::size_t k = 0; k < problem.edges.size(); ++k) {
        const Edge &a = again->edges[k], &b = problem.edges[k];
        QVERIFY(a.costs == b.costs && a.from_class == b.from_class && a.to_class == b.to_class && a.from == b.from &&
                a.to == b.to);
      }
    }
  }

  void malformed_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("message");
    const auto row = [](const char* name, const std::string& text, const char* message) {
      QTest::newRow(name) << QString::fromStdString(text) << QString(message);
    };
    row("no object", "[]", "p.json: is not a JSON object");
    row("no format", "{}", "p.json: has no \"format\"");
    row("other format", R"({"format": "turnpoint/plan@1"})",
        "p.json: has the format \"turnpoint/plan@1\", not \"turnpoint/frontier-problem@1\"");
    row("no nodes", R"({"format": "turnpoint/frontier-problem@1"})", "p.json: has no \"nodes\" array");
    row("no configurations", with_nodes(R"([{"name": "a", "costs": []}])"), "p.json: node 0 'a': has no configuration");
    row("bad pair", with_nodes(R"([{"name": "a", "costs": [[1, 2, 3]]}])"),
        "p.json: node 0 'a': configuration 0 is not a [memory, time] pair");
    row("bad entry", with_nodes(R"([{"name": "a", "costs": [7]}])"),
        "p.json: node 0 'a': configuration 0 is not a cost entry");
    row("negative memory", with_nodes(R"([{"name": "a", "costs": [[-1, 2]]}])"),
        "p.json: node 0 'a': configuration 0: memory -1 is negative");
    row("fractional memory", with_nodes(R"([{"name": "a", "costs": [[1.5, 2]]}])"),
        "p.json: node 0 'a': configuration 0: memory 1.5 is not an integer");
    row("large memory", with_nodes(R"([{"name": "a", "costs": [[9007199254740993, 2]]}])"),
        "p.json: node 0 'a': configuration 0: memory 9007199254740993 is above 2^53");
    row("huge memory", with_nodes(R"([{"name": "a", "costs": [[1e300, 2]]}])"),
        "p.json: node 0 'a': configuration 0: memory 1e+300 is above 2^53");
    row("null time", with_nodes(R"([{"name": "a", "costs": [[1, null]]}])"),
        "p.json: node 0 'a': configuration 0: time null is not a number");
    row("negative time", with_nodes(R"([{"name": "a", "costs": [[1, -2]]}])"),
        "p.json: node 0 'a': configuration 0: time -2 is negative");
    row("NaN", with_nodes(R"([{"name": "a", "costs": [[1, NaN]]}])"), "");
    row("time sums", with_nodes(R"([{"costs": [[1, 1e308]]}, {"costs": [[1, 1e308]]}])"),
        "p.json: node 1: sums of time overflow");
    row("from out of range", with_nodes(kTwo, R"([{"from": 2, "to": 1, "costs": []}])"),
        "p.json: edge 0: \"from\" names node 2, there are 2");
    row("negative index", with_nodes(kTwo, R"([{"from": 0, "to": -1, "costs": []}])"),
        "p.json: edge 0: \"to\" names node -1, there are 2");
    row("no index", with_nodes(kTwo, R"([{"from": 0, "costs": []}])"), "p.json: edge 0: has no integer \"to\"");
    row("self-loop", with_nodes(kTwo, R"([{"from": 1, "to": 1, "costs": [[[0, 0]]]}])"),
        "p.json: edge 0: joins node 1 to itself");
    row("missing row", with_nodes(kTwo, R"([{"from": 0, "to": 1, "costs": [[[0, 0]]]}])"),
        "p.json: edge 0: has 1 rows of costs for 2 configurations");
    row("ragged", with_nodes(kTwo, R"([{"from": 0, "to": 1, "costs": [[[0, 0]], [[0, 0], [1, 1]]]}])"),
        "p.json: edge 0: row 1 has 2 entries, not 1 (ragged table)");
    row("one class list", with_nodes(kTwo, R"([{"from": 0, "to": 1, "from_class": [0, 0], "costs": [[[0, 0]]]}])"),
        "p.json: edge 0: has only one of \"from_class\" and \"to_class\"");
    row("class out of range",
        with_nodes(kTwo, R"([{"from": 0, "to": 1, "from_class": [0, 1], "to_class": [0], "costs": [[[0, 0]]]}])"),
        "p.json: edge 0: from_class names class 1, the table has 1");
    row("class list too short",
        with_nodes(kTwo, R"([{"from": 0, "to": 1, "from_class": [0], "to_class": [0], "costs": [[[0, 0]]]}])"),
        "p.json: edge 0: from_class has 1 entries, the node has 2 configurations");
    row("negative class",
        with_nodes(kTwo, R"([{"from": 0, "to": 1, "from_class": [0, -1], "to_class": [0], "costs": [[[0, 0]]]}])"),
        "p.json: edge 0: \"from_class\" holds -1, not a class number");
    row("classes of nothing",
        with_nodes(kTwo, R"([{"from": 0, "to": 1, "from_class": [0, 0], "to_class": [0], "costs": []}])"),
        "p.json: edge 0: from_class names class 0, the table has 0");
  }

  void malformed() {
    QFETCH(QString, text);
    QFETCH(QString, message);
    const std::string found = message_of(text.toStdString());
    QVERIFY(!found.empty());
    if (!message.isEmpty()) QCOMPARE(QString::fromStdString(found), message);
  }

  /// What JSON cannot even say is checked all the same: problems are also made by other parts of the program.
  void invalid_values() {
    const auto invalid = [](CostPoint point, std::size_t copies = 1) {
      Problem problem;
      Node node;
      node.costs.add(point);
      problem.nodes.assign(copies, node);
      const auto ok = validate(problem);
      return ok ? std::string() : ok.error().message();
    };
    QCOMPARE(invalid({0, std::nan("")}), std::string("node 0: time is not a finite number"));
    QCOMPARE(invalid({0, std::numeric_limits<double>::infinity()}), std::string("node 0: time is not a finite number"));
    QCOMPARE(invalid({-1, 0}), std::string("node 0: memory -1 is negative"));
    QCOMPARE(invalid({(std::int64_t(1) << 53) + 1, 0}), std::string("node 0: memory 9007199254740993 is above 2^53"));
    QCOMPARE(invalid({std::int64_t(1) << 53, 0}, 1023), std::string());
    QCOMPARE(invalid({std::int64_t(1) << 53, 0}, 1025), std::string("node 1023: sums of memory reach 2^63"));
  }
};

QTEST_APPLESS_MAIN(ProblemTest)
#include "problem_test.moc"
