// SPDX-License-Identifier: Apache-2.0
// Whatever is wrong with a file: one message that names file and place, in little time.
#include <QTemporaryDir>
#include <fstream>

#include "core/import/source/model_source.h"
#include "import/onnx_writer.h"
#include "import/tensorflow_bound.h"
#include "processor_clock.h"

using test::Message;

namespace {

const std::string kGood = placeholder("x", {-1, 6}) + weight("w", {6, 10}) + node("y", "MatMul", {"x", "w"});

Message wire_node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs = {}) {
  Message m;
  m.text(1, name).text(2, op);
  for (const auto& input : inputs) m.text(3, input);
  return m;
}
Message entry(const std::string& key, const Message& value) { return Message().text(1, key).message(2, value); }
Message shape(const std::vector<std::uint64_t>& sizes) {
  Message m;
  for (const auto size : sizes) m.message(2, Message().number(1, size));
  return m;
}
/// x [sizes] as a placeholder and relu(x).
std::string wire_graph(const std::vector<std::uint64_t>& sizes) {
  auto x = wire_node("x", "Placeholder");
  x.message(5, entry("dtype", Message().number(6, 1))).message(5, entry("shape", Message().message(7, shape(sizes))));
  return Message().message(1, x).message(1, wire_node("y", "Relu", {"x"})).bytes();
}
std::string open_error(const std::string& content, std::int64_t batch = 4) {
  const turnpoint::test::ProcessorClock timer;
  const auto bound = bind_graph(content, batch);
  if (timer.elapsed() > 5000) return "took " + std::to_string(timer.elapsed()) + " ms";
  return bound.error;
}

}  // namespace

#define REFUSED(content, part)                                                                                        \
  do {                                                                                                                \
    const auto message_ = open_error(content);                                                                        \
    QVERIFY2(message_.find(part) != std::string::npos, std::string("got: ").append(message_).c_str());                \
    QVERIFY2(message_.rfind("test.pbtxt", 0) == 0, std::string("names no file: ").append(message_).c_str());          \
    QVERIFY2(message_.find('\n') == std::string::npos, std::string("more than one line: ").append(message_).c_str()); \
  } while (false)

class TensorflowMalformedTest : public QObject {
  Q_OBJECT
 private slots:
  void good_ones_open() {
    QCOMPARE(open_error(kGood), std::string());
    QCOMPARE(open_error(wire_graph({~std::uint64_t{0}, 5})), std::string());
  }

  void text_format() {
    REFUSED(kGood + "node { name: \"z", "line 4: a text in quotes is never closed");
    REFUSED(kGood + "node { name: \"z\n\" }", "is not closed in its line");
    REFUSED(kGood + "node { name: \"z\" ", "the text ends inside a message that begins in line 4");
    REFUSED(kGood + "}", "'}' closes nothing");
    REFUSED("node { name: \"x\" >", "another bracket opened");
    REFUSED("node { name: 5 }", "text in quotes was expected");
    REFUSED("node { name \"x\" }", "':' or '{' was expected");
    REFUSED("node { attr { key: \"a\" value { i: 99999999999999999999999 } } }", "is no whole number");
    REFUSED("node { attr { key: \"a\" value { f: --1 } } }", "is no number");
    REFUSED("node { attr { key: \"a\" value { list { i: [1, 2 } } } }", "value was expected");
    REFUSED("node { name: \"\\q\" }", "unknown escape");
    REFUSED("library { }", "the graph holds no nodes");
  }

  void nested_text_messages() {
    std::string bomb = "node { ";
    for (int i = 0; i < 2'000'000; ++i) bomb += "attr { ";
    REFUSED(bomb, "nested more than 64 deep");
    std::string lists = "node { name: \"x\" op: \"y\" unknown: ";
    for (int i = 0; i < 1'000'000; ++i) lists += "[";
    REFUSED(lists, "value was expected");
  }

  void truncated_and_damaged_wire() {
    const auto good = wire_graph({4, 5});
    for (std::size_t size = 1; size < good.size(); ++size) {
      const auto message = open_error(good.substr(0, size));
      QVERIFY2(!message.empty() || size == good.size(), std::to_string(size).c_str());
    }
    // A length of 2^63 inside a node.
    auto node_bytes = wire_node("x", "Placeholder").bytes() + "\x2a\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
    REFUSED(Message().message(1, wire_node("a", "NoOp")).text(1, node_bytes).bytes(), "damaged or truncated");
    REFUSED(good + "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "damaged or truncated");
  }

  void impossible_sizes() {
    REFUSED(wire_graph({std::uint64_t{1} << 62, std::uint64_t{1} << 62}), "impossible dimension");
    REFUSED(wire_graph({4, 1'000'000'000, 1'000'000'000, 1'000'000'000}), "");  // 10^27 elements
    REFUSED(placeholder("x", {-1, 6}) + weight("w", {1'000'000'000, 1'000'000'000, 1'000'000'000}) +
                node("y", "Mul", {"x", "w"}),
            "impossible size");
    REFUSED(placeholder("x", {-1, 6}) + weight("w", {6, -7}) + node("y", "MatMul", {"x", "w"}), "impossible size");
    REFUSED(placeholder("x", Shape(40, 2)) + node("y", "Relu", {"x"}), "more than 32 dimensions");
    REFUSED(
        placeholder("x", {-1, 6}) + integers("shape", {9223372036854775807, 2}) + node("y", "Reshape", {"x", "shape"}),
        "");
    REFUSED(placeholder("x", {-1, 8, 8, 3}) + weight("k", {3, 3, 3, 4}) +
                node("y", "Conv2D", {"x", "k"}, list("strides", {1, 0, 0, 1}) + text("padding", "SAME")),
            "");
    REFUSED(
        placeholder("x", {-1, 8, 8, 3}) + weight("k", {3, 3, 3, 4}) +
            node("y", "Conv2D", {"x", "k"}, list("strides", {1, 9223372036854775807, 1, 1}) + text("padding", "SAME")),
        "");
    REFUSED(placeholder("x", {-1, 6}) + integer("axis", 0) +
                node("y", "Split", {"axis", "x"}, attribute("num_split", "i: 9000000000")),
            "number of parts");
  }

  // Its amount is no number of 64 bits, so that no bound on amounts holds it off.
  void the_least_number() {
    const std::string least = "-9223372036854775808";
    const auto constant = [](const std::string& name, const std::string& shape_, const std::vector<std::string>& values) {
      std::string words = "tensor { dtype: DT_INT64 tensor_shape " + shape_;
      for (const auto& value : values) words += " int64_val: " + value;
      return node(name, "Const", {}, attribute("value", words + " }"));
    };
    const std::string scalars = constant("from", "{}", {least}) + constant("to", "{}", {"0"}) + constant("step", "{}", {"1"});
    REFUSED(placeholder("x", {-1, 6}, "DT_INT64") + scalars + node("r", "Range", {"from", "to", "step"}) +
                node("y", "AddV2", {"x", "r"}),
            "'r'");
    REFUSED(placeholder("x", {-1, 6}) + constant("sides", shape_text({2, 2}), {"0", "0", least, "-1"}) +
                node("y", "Pad", {"x", "sides"}),
            "a padding is out of range");
  }

  void cycles_and_recursion() {
    REFUSED(
        placeholder("x", {-1, 6}) + node("a", "Add", {"x", "b"}) + node("b", "Relu", {"a"}) + node("c", "Relu", {"b"}),
        "is part of a cycle");
    const auto function = [](const std::string& name, const std::string& calls, int times = 1) {
      std::string text =
          "function { signature { name: \"" + name + "\" input_arg { name: \"a\" } output_arg { name: \"o\" } } ";
      std::string last = "a";
      for (int i = 0; i < times; ++i) {
        std::string made("n");
        made += std::to_string(i);
        text += "node_def" + node(made, calls, {last}).substr(4);
        last = made + ":" + (calls == "Relu" ? "activations" : "o") + ":0";
      }
      return text + "ret { key: \"o\" value: \"" + last + "\" } }";
    };
    REFUSED(placeholder("x", {-1, 6}) + node("y", "f", {"x"}) + "library { " + function("f", "f") + " }",
            "function 'f' calls itself");
    REFUSED(placeholder("x", {-1, 6}) + node("y", "f", {"x"}) + "library { " + function("f", "g") + function("g", "f") +
                " }",
            "calls itself");
    // Each of 30 functions calls the next ten times.
    std::string bomb = placeholder("x", {-1, 6}) + node("y", "f0", {"x"}) + "library { ";
    for (int i = 0; i < 30; ++i)
      bomb += function("f" + std::to_string(i), i == 29 ? "Relu" : "f" + std::to_string(i + 1), 10);
    REFUSED(bomb + " }", "more than 250000 nodes");
    std::string deep = placeholder("x", {-1, 6}) + node("y", "f0", {"x"}) + "library { ";
    for (int i = 0; i < 100; ++i)
      deep += function("f" + std::to_string(i), i == 99 ? "Relu" : "f" + std::to_string(i + 1));
    REFUSED(deep + " }", "more than 32 deep");
    REFUSED(
        placeholder("x", {-1, 6}) + node("y", "PartitionedCall", {"x"}, attribute("f", "func { name: \"absent\" }")),
        "does not hold");
  }

  void names_and_references() {
    REFUSED(kGood + node("y", "Relu", {"x"}), "two nodes have this name");
    REFUSED(placeholder("x", {-1, 6}) + node("y", "Relu", {"x:99999999999"}), "is no name of a tensor");
    REFUSED(placeholder("x", {-1, 6}) + node("y", "Relu", {"x:7"}), "");
    REFUSED(placeholder("x", {-1, 6}, "DT_STRING") + node("y", "Relu", {"x"}), "");
    // Names that are no text come out as text.
    BIND(m, placeholder("x\\377\\001\\n", {-1, 6}) + node("y", "Relu", {"x\\377\\001\\n"}));
    QCOMPARE(m.model
                 ->operators[m.model->results.empty()
                                 ? OperatorId{}
                                 : m.model->tensors[m.model->operators[m.result().producer].inputs[0].tensor].producer]
                 .name,
             std::string("x???"));
  }

  void not_a_number() {
    BIND(m,
         placeholder("x", {-1, 6}) + number("n", 0) +
             node("c", "Const", {},
                  attribute(
                      "value",
                      "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: nan float_val: -inf }")) +
             node("z", "Cast", {"c"}, attribute("DstT", "type: DT_INT32")) + node("y", "Mul", {"x", "n"}) +
             node("v", "Relu", {"y"}));
    QCOMPARE(m.result().shape, (Shape{4, 6}));
    REFUSED(placeholder("x", {-1, 6}) +
                node("c", "Const", {},
                     attribute(
                         "value",
                         "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: nan float_val: inf }")) +
                node("z", "Cast", {"c"}, attribute("DstT", "type: DT_INT32")) + node("y", "Reshape", {"x", "z"}),
            "");
  }

  /// A path inside a model is a name, never a file that is opened; a folder that is no model is refused.
  void saved_model_folders() {
    QTemporaryDir folder;
    const auto path = folder.path().toStdString();
    std::ofstream(path + "/saved_model.pbtxt")
        << "saved_model_schema_version: 1 meta_graphs { graph_def { " << placeholder("x", {-1, 6})
        << variable("../../../../etc/passwd", {6, 3}, "VarHandleOp")
        << node("r", "ReadVariableOp", {"../../../../etc/passwd"}) << node("y", "MatMul", {"x", "r"})
        << " } asset_file_def { filename: \"/dev/zero\" } }";
    const auto source = open_model(path);
    QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
    const auto model = (*source)->bind({2, 0});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    QCOMPARE((*model)->parameters, std::int64_t{18});
    // A dangling link is no model; a binary one is preferred.
    std::ofstream(path + "/saved_model.pb", std::ios::binary) << wire_graph({4, 5});
    QCOMPARE((*open_model(path))->source(), path + "/saved_model.pb");
  }

  /// A constant of 64 MB in text is read over, not kept.
  void large_constants_cost_nothing() {
    std::string content =
        placeholder("x", {-1, 6}) +
        "node { name: \"w\" op: \"Const\" attr { key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape "
        "{ dim { size: 6 } dim { size: 3000000 } } tensor_content: \"";
    for (int i = 0; i < 16'000'000; ++i) content += "\\000";
    content += "\" } } } }\n" + node("y", "MatMul", {"x", "w"});
    const turnpoint::test::ProcessorClock timer;
    BIND(m, content);
    QVERIFY2(timer.elapsed() < 3000, std::to_string(timer.elapsed()).c_str());
    QCOMPARE(m.model->parameters, std::int64_t{18'000'000});
  }
};

QTEST_APPLESS_MAIN(TensorflowMalformedTest)
#include "tensorflow_malformed_test.moc"
