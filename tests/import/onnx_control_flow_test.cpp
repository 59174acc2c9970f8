// SPDX-License-Identifier: Apache-2.0
// Loop and Scan laid out trip by trip: what is counted, what is stored once, what is warned of, what is refused.
#include <algorithm>

#include "import/onnx_bound.h"
#include "processor_clock.h"

namespace {

Message body_attribute(const Message& graph) { return Message().text(1, "body").message(6, graph).number(20, 5); }

Message named(const char* name) { return Message().text(1, name); }

/// state [., 8] times a stored matrix 8 x 8; the state of every trip is stacked as well.
enum class Stored { initializer, constant };
Message loop_body(Stored how, const char* condition = "go_on") {
  Message body;
  if (how == Stored::constant)
    body.message(1, test::Model::make_node("Constant", {}, {"w"},
                                           {test::tensor_attribute("value", test::tensor("w", {8, 8}, test::kFloat))}));
  else
    body.message(5, test::tensor("w", {8, 8}, test::kFloat));
  body.message(1, test::Model::make_node("MatMul", {"state", "w"}, {"next"}))
      .message(1, test::Model::make_node("Identity", {condition}, {"again"}))
      .message(1, test::Model::make_node("Relu", {"next"}, {"seen"}));
  for (const char* input : {"trip", "go_on", "state"}) body.message(11, named(input));
  for (const char* output : {"again", "next", "seen"}) body.message(12, named(output));
  return body;
}

test::Model loop(std::int64_t trips, const Message& body) {
  test::Model m;
  m.input("x", {"batch", "8"}).input("flag", {}, test::kBool);
  m.initializer(test::integer("trips", trips));
  m.node("Loop", {"trips", "", "x"}, {"last", "all"}, {body_attribute(body)}, "repeat").output("last").output("all");
  return m;
}

bool warned(const Bound& bound, const char* words) {
  return std::any_of(bound.model->warnings.begin(), bound.model->warnings.end(), [&](const std::string& w) {
    return w.find("'repeat'") != std::string::npos && w.find(words) != std::string::npos;
  });
}

double macs(const Bound& bound) { return summarise(*bound.model).macs_forward; }

}  // namespace

class OnnxControlFlowTest : public QObject {
  Q_OBJECT
 private slots:
  void a_loop_is_counted_once_per_trip_and_its_weight_once() {
    for (const Stored how : {Stored::initializer, Stored::constant}) {
      BIND(bound, loop(5, loop_body(how)));
      QCOMPARE(bound.model->parameters, std::int64_t{64});
      QCOMPARE(macs(bound), 5.0 * 4 * 8 * 8);
      QCOMPARE(bound.count(OperatorKind::matmul), std::size_t{5});
      QCOMPARE(bound.result(0).shape, list({4, 8}));
      QCOMPARE(bound.result(1).shape, list({5, 4, 8}));
      QVERIFY(bound.model->warnings.empty());
    }
  }

  void trips_that_nobody_knows_are_counted_once() {
    BIND(endless, loop(std::numeric_limits<std::int64_t>::max(), loop_body(Stored::initializer)));
    QCOMPARE(macs(endless), 1.0 * 4 * 8 * 8);
    QCOMPARE(endless.result(1).shape, list({1, 4, 8}));
    QVERIFY(warned(endless, "not constant"));
    BIND(many, loop(1'000'000, loop_body(Stored::initializer)));
    QCOMPARE(macs(many), 1.0 * 4 * 8 * 8);
    QVERIFY(warned(many, "too many"));
  }

  void a_loop_that_may_end_early_is_counted_in_full() {
    BIND(bound, loop(3, loop_body(Stored::initializer, "flag")));
    QCOMPARE(macs(bound), 3.0 * 4 * 8 * 8);
    QVERIFY(warned(bound, "end early"));
  }

  void a_loop_that_never_runs_hands_its_state_on() {
    test::Model m;
    m.input("x", {"batch", "8"}).initializer(test::integer("trips", 0));
    m.node("Loop", {"trips", "", "x"}, {"last"}, {body_attribute(loop_body(Stored::initializer))}, "repeat");
    m.node("Tanh", {"last"}, {"y"}).output("y");
    BIND(bound, m);
    QCOMPARE(macs(bound), 0.0);
    QCOMPARE(bound.maker().detail, std::string("Tanh"));
    const Bound stack = bind(loop(0, loop_body(Stored::initializer)));
    QVERIFY2(stack.error.find("'repeat'") != std::string::npos && stack.error.find("never runs") != std::string::npos,
             stack.error.c_str());
  }

  void the_trip_number_chooses_branches() {
    Message then, other, body;
    then.message(1, test::Model::make_node("MatMul", {"state", "w"}, {"t"})).message(12, named("t"));
    other.message(1, test::Model::make_node("Relu", {"state"}, {"e"})).message(12, named("e"));
    body.message(5, test::tensor("w", {8, 8}, test::kFloat))
        .message(5, test::integer("two", 2))
        .message(1, test::Model::make_node("Less", {"trip", "two"}, {"early"}))
        .message(1, test::Model::make_node("If", {"early"}, {"next"},
                                           {Message().text(1, "then_branch").message(6, then).number(20, 5),
                                            Message().text(1, "else_branch").message(6, other).number(20, 5)}))
        .message(1, test::Model::make_node("Relu", {"next"}, {"seen"}));
    for (const char* input : {"trip", "go_on", "state"}) body.message(11, named(input));
    for (const char* output : {"go_on", "next", "seen"}) body.message(12, named(output));
    BIND(bound, loop(5, body));
    QCOMPARE(bound.count(OperatorKind::matmul), std::size_t{2});  // trips 0 and 1
    QVERIFY(bound.model->warnings.empty());
  }

  void a_scan_walks_its_input() {
    for (const bool known : {true, false}) {
      Message body;
      body.message(5, test::tensor("w", {8, 8}, test::kFloat))
          .message(1, test::Model::make_node("Add", {"state", "slice"}, {"sum"}))
          .message(1, test::Model::make_node("MatMul", {"sum", "w"}, {"next"}))
          .message(1, test::Model::make_node("Relu", {"next"}, {"seen"}));
      for (const char* input : {"state", "slice"}) body.message(11, named(input));
      for (const char* output : {"next", "seen"}) body.message(12, named(output));
      test::Model m;
      m.input("x", {"batch", "8"}).input("steps", {"batch", known ? "6" : "length", "8"});
      m.node("Scan", {"x", "steps"}, {"last", "all"},
             {body_attribute(body), attribute("num_scan_inputs", std::int64_t{1}),
              attribute("scan_input_axes", std::vector<std::int64_t>{1}),
              attribute("scan_output_axes", std::vector<std::int64_t>{1}),
              attribute("scan_input_directions", std::vector<std::int64_t>{1})},
             "repeat");
      m.output("last").output("all");
      BIND(bound, m);
      const std::int64_t trips = known ? 6 : 1;
      QCOMPARE(macs(bound), static_cast<double>(trips) * 4 * 8 * 8);
      QCOMPARE(bound.model->parameters, std::int64_t{64});
      QCOMPARE(bound.result(1).shape, list({4, trips, 8}));
      QCOMPARE(warned(bound, "not constant"), !known);
    }
  }

  void nested_loops_cannot_explode() {
    Message inner = loop_body(Stored::initializer);
    for (int level = 0; level < 8; ++level) {
      Message outer;
      outer.message(5, test::integer("many", 1000))
          .message(1, test::Model::make_node("Loop", {"many", "", "state"}, {"next", "stack"}, {body_attribute(inner)}))
          .message(1, test::Model::make_node("Relu", {"next"}, {"seen"}));
      for (const char* input : {"trip", "go_on", "state"}) outer.message(11, named(input));
      for (const char* output : {"go_on", "next", "seen"}) outer.message(12, named(output));
      inner = outer;
    }
    const turnpoint::test::ProcessorClock clock;
    const Bound bound = bind(loop(1000, inner));
    QVERIFY2(bound.model || !bound.error.empty(), "neither a model nor a message");
    QVERIFY2(clock.elapsed() < 5000, qPrintable(QString::number(clock.elapsed())));
  }

  void what_is_broken_is_named() {
    const auto refused = [](const test::Model& m, const char* words) {
      const Bound bound = bind(m);
      return !bound.model && bound.error.find("'repeat'") != std::string::npos &&
             bound.error.find(words) != std::string::npos;
    };
    test::Model bare;
    bare.input("x", {"batch", "8"}).node("Loop", {"", "", "x"}, {"y"}, {}, "repeat").output("y");
    QVERIFY(refused(bare, "body"));
    Message poor = Message().message(11, named("trip")).message(12, named("trip"));
    QVERIFY(refused(loop(3, poor), "too few"));
    Message absent = loop_body(Stored::initializer);
    absent.message(12, named("nowhere"));
    test::Model m;
    m.input("x", {"batch", "8"}).initializer(test::integer("trips", 2));
    m.node("Loop", {"trips", "", "x"}, {"a", "b", "c"}, {body_attribute(absent)}, "repeat").output("a");
    QVERIFY(refused(m, "never makes output 3"));
    test::Model scan;
    scan.input("x", {"batch", "8"})
        .node("Scan", {"x"}, {"y"}, {body_attribute(poor), attribute("num_scan_inputs", std::int64_t{9})}, "repeat")
        .output("y");
    QVERIFY(refused(scan, "another number"));
  }
};

QTEST_APPLESS_MAIN(OnnxControlFlowTest)
#include "onnx_control_flow_test.moc"
