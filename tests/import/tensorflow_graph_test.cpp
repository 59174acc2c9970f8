// SPDX-License-Identifier: Apache-2.0
// How TensorFlow graphs are put together: ports, control inputs, functions, variables, training, branches, loops.
#include "import/tensorflow_bound.h"

namespace {

const std::string kDense = placeholder("x", {-1, 6}) + weight("w", {6, 10}) + node("y", "MatMul", {"x", "w"});

/// A function f(a, b) = relu(a b); its arguments are used by name, its results as "node:output:index".
std::string library(const std::string& name, const std::string& inner = "Relu") {
  return "library { function { signature { name: \"" + name +
         "\" input_arg { name: \"a\" type: DT_FLOAT } input_arg { name: \"b\" type: DT_FLOAT } "
         "output_arg { name: \"out\" type: DT_FLOAT } } "
         "node_def { name: \"product\" op: \"MatMul\" input: \"a\" input: \"b\" } "
         "node_def { name: \"end\" op: \"" +
         inner +
         "\" input: \"product:product:0\" } "
         "ret { key: \"out\" value: \"end:activations:0\" } } }\n";
}

}  // namespace

class TensorflowGraphTest : public QObject {
  Q_OBJECT
 private slots:
  void ports_and_control_inputs() {
    BIND(m, placeholder("x", {-1, 6}) + integer("axis", 1) +
                node("cut", "Split", {"axis", "x"}, attribute("num_split", "i: 2")) +
                node("unrelated", "NoOp", {"^x"}) + weight("w", {3, 5}) +
                node("y", "MatMul", {"cut:1", "w", "^unrelated", "^cut"}));
    QCOMPARE(m.result().shape, (Shape{4, 5}));
    QCOMPARE(m.macs(), 4.0 * 3 * 5);
    QCOMPARE(m.model->parameters, std::int64_t{15});
  }

  void what_reads_gradients_is_no_network() {
    // Names of an optimiser's own, and a Transpose whose order nobody knows.
    BIND(m, kDense + node("r", "Relu", {"y"}) + node("Adam/r", "ReluGrad", {"r", "r"}) +
                placeholder("Adam/order", {2}, "DT_INT32") +
                node("Adam/turned", "Transpose", {"Adam/r", "Adam/order"}) +
                node("Adam/norm", "L2Loss", {"Adam/turned"}));
    QCOMPARE(m.model->results.size(), std::size_t(1));
    QCOMPARE(m.result().shape, (Shape{4, 10}));
    QCOMPARE(m.macs(), 240.0);
  }

  void what_cannot_be_read_can_be_placed() {
    const auto refused =
        bind_graph(kDense + placeholder("order", {2}, "DT_INT32") + node("z", "Transpose", {"y", "order"}));
    QVERIFY(!refused.model);
    QVERIFY2(refused.error.find("turnpoint-cli place test.pbtxt") != std::string::npos, refused.error.c_str());
  }

  void batch_is_the_unknown_leading_dimension() {
    for (const std::int64_t batch : {1, 4, 64}) {
      BIND(m, kDense, batch);
      QCOMPARE(m.model->batch, batch);
      QCOMPARE(m.macs(), static_cast<double>(batch) * 60);
    }
    // A fixed one is re-bound, also where a reshape repeats it.
    BIND(m,
         placeholder("x", {8, 2, 3}) + integers("shape", {8, 6}) + node("flat", "Reshape", {"x", "shape"}) +
             weight("w", {6, 10}) + node("y", "MatMul", {"flat", "w"}),
         32);
    QCOMPARE(m.result().shape, (Shape{32, 10}));
  }

  void variables_of_both_kinds() {
    // Version 1: a reference, its reader, its initial value and the Assign that sets it.
    BIND(one, placeholder("x", {-1, 6}) + variable("w", {6, 10}) + node("w/read", "Identity", {"w"}) +
                  weight("w/init", {6, 10}) + node("w/Assign", "Assign", {"w", "w/init"}) +
                  node("y", "MatMul", {"x", "w/read"}) + node("init", "NoOp", {"^w/Assign"}));
    QCOMPARE(one.model->parameters, std::int64_t{60});
    QCOMPARE(one.model->results.size(), std::size_t{1});
    // Version 2: a handle, read twice.
    BIND(two, placeholder("x", {-1, 6}) + variable("w", {6, 6}, "VarHandleOp") + weight("w/init", {6, 6}) +
                  node("w/Assign", "AssignVariableOp", {"w", "w/init"}) + node("r1", "ReadVariableOp", {"w"}) +
                  node("r2", "ReadVariableOp", {"w"}) + node("h", "MatMul", {"x", "r1"}) +
                  node("y", "MatMul", {"h", "r2"}));
    QCOMPARE(two.model->parameters, std::int64_t{36});
    QCOMPARE(two.macs(), 2.0 * 4 * 36);
  }

  void saving_and_summaries_are_pruned() {
    BIND(m, placeholder("x", {-1, 6}) + variable("w", {6, 10}) + node("y", "MatMul", {"x", "w"}) +
                node("filename", "Const") + node("save/SaveV2", "SaveV2", {"filename", "w"}) +
                node("save/RestoreV2", "RestoreV2", {"filename"}) +
                node("save/Assign", "Assign", {"w", "save/RestoreV2"}) +
                node("hist", "HistogramSummary", {"filename", "y"}));
    QCOMPARE(m.model->results.size(), std::size_t{1});
    QCOMPARE(m.result().shape, (Shape{4, 10}));
    QCOMPARE(m.model->operators.size(), std::size_t{2});
  }

  void gradients_and_updates_are_pruned() {
    BIND(m, placeholder("x", {-1, 6}) + placeholder("labels", {-1, 10}) + variable("w", {6, 10}) +
                number("rate", 0.1F) + node("y", "MatMul", {"x", "w"}) +
                node("loss", "SoftmaxCrossEntropyWithLogits", {"y", "labels"}) +
                node("gradients/loss_grad/mul", "Mul", {"loss:1", "rate"}) +
                node("gradients/y_grad/MatMul", "MatMul", {"x", "gradients/loss_grad/mul"}, flag("transpose_a")) +
                node("train/update_w", "ApplyGradientDescent", {"w", "rate", "gradients/y_grad/MatMul"}));
    QCOMPARE(m.result().shape, (Shape{4}));
    QCOMPARE(m.macs(), 4.0 * 60);
    QCOMPARE(m.count(OperatorKind::matmul), std::size_t{1});
  }

  void functions_by_name_and_by_call() {
    const auto f = attribute("f", "func { name: \"layer\" }");
    for (const auto& call : {node("y", "layer", {"x", "w"}), node("y", "PartitionedCall", {"x", "w"}, f),
                             node("y", "StatefulPartitionedCall", {"x", "w"}, f)}) {
      BIND(m, placeholder("x", {-1, 6}) + variable("w", {6, 10}) + call + library("layer"));
      QCOMPARE(m.maker().detail, std::string("Relu"));
      QCOMPARE(m.macs(), 4.0 * 60);
      QCOMPARE(m.model->parameters, std::int64_t{60});
    }
    // Called twice with one weight: one parameter, two products.
    BIND(twice, placeholder("x", {-1, 6}) + variable("w", {6, 6}) + node("h", "layer", {"x", "w"}) +
                    node("y", "layer", {"h", "w"}) + library("layer"));
    QCOMPARE(twice.model->parameters, std::int64_t{36});
    QCOMPARE(twice.count(OperatorKind::matmul), std::size_t{2});
  }

  void variables_through_calls() {
    const std::string read =
        "library { function { signature { name: \"net\" input_arg { name: \"x\" } input_arg { name: \"handle\" } "
        "output_arg { name: \"out\" } } "
        "node_def { name: \"read\" op: \"ReadVariableOp\" input: \"handle\" } "
        "node_def { name: \"product\" op: \"MatMul\" input: \"x\" input: \"read:value:0\" } ret { key: \"out\" value: "
        "\"product:product:0\" } } "
        "function { signature { name: \"outer\" input_arg { name: \"x\" } input_arg { name: \"h\" } output_arg { name: "
        "\"out\" } } "
        "node_def { name: \"call\" op: \"PartitionedCall\" input: \"x\" input: \"h\" attr { key: \"f\" value { func { "
        "name: \"net\" } } } } "
        "ret { key: \"out\" value: \"call:output:0\" } } }";
    BIND(m, placeholder("x", {-1, 6}) + variable("kernel", {6, 10}, "VarHandleOp") +
                node("call", "StatefulPartitionedCall", {"x", "kernel"}, attribute("f", "func { name: \"outer\" }")) +
                read);
    QCOMPARE(m.macs(), 4.0 * 60);
    bool named = false;
    for (const auto& t : m.model->tensors) named = named || (t.role == TensorRole::parameter && t.name == "kernel");
    QVERIFY(named);
  }

  void first_branch_and_straight_loop() {
    const auto branches =
        attribute("then_branch", "func { name: \"layer\" }") + attribute("else_branch", "func { name: \"other\" }");
    BIND(branch,
         placeholder("x", {-1, 6}) + variable("w", {6, 10}) +
             node("flag", "Const", {}, attribute("value", "tensor { dtype: DT_BOOL tensor_shape {} bool_val: true }")) +
             node("y", "If", {"flag", "x", "w"}, branches) + library("layer") + library("other", "Sigmoid"));
    QCOMPARE(branch.maker().detail, std::string("Relu"));
    QVERIFY(branch.warns("the first is taken"));

    // A version 1 loop: x -> x w, again and again.
    BIND(loop,
         placeholder("x", {-1, 6}) + variable("w", {6, 6}) +
             node("flag", "Const", {}, attribute("value", "tensor { dtype: DT_BOOL tensor_shape {} bool_val: true }")) +
             node("enter", "Enter", {"x"}) + node("merge", "Merge", {"enter", "next"}) +
             node("go", "LoopCond", {"flag"}) + node("switch", "Switch", {"merge", "go"}) +
             node("body", "MatMul", {"switch:1", "w"}) + node("next", "NextIteration", {"body"}) +
             node("exit", "Exit", {"switch"}) + node("y", "Relu", {"exit"}));
    QCOMPARE(loop.macs(), 4.0 * 36);
    QCOMPARE(loop.maker().detail, std::string("Relu"));
    QVERIFY(loop.warns("counted once"));
  }

  // A cell between reading a step and writing a state, as Keras makes loops: the whole loop is one layer.
  void loops_over_time() {
    const auto body = [](const std::string& cell) {
      return "library { function { signature { name: \"body\" input_arg { name: \"i\" } input_arg { name: \"out\" } "
             "input_arg { name: \"h\" } "
             "input_arg { name: \"steps\" } input_arg { name: \"k\" } input_arg { name: \"r\" } input_arg { name: "
             "\"b\" } "
             "output_arg { name: \"i1\" } output_arg { name: \"out1\" } output_arg { name: \"h1\" } } "
             "node_def { name: \"step\" op: \"TensorListGetItem\" input: \"steps\" input: \"i\" input: \"i\" } "
             "node_def { name: \"xk\" op: \"MatMul\" input: \"step:item:0\" input: \"k\" } "
             "node_def { name: \"hr\" op: \"MatMul\" input: \"h\" input: \"r\" } "
             "node_def { name: \"sum\" op: \"AddV2\" input: \"xk:product:0\" input: \"hr:product:0\" } "
             "node_def { name: \"all\" op: \"BiasAdd\" input: \"sum:z:0\" input: \"b\" } " +
             cell +
             "node_def { name: \"write\" op: \"TensorListSetItem\" input: \"out\" input: \"i\" input: \"state:y:0\" } "
             "ret { key: \"i1\" value: \"i\" } ret { key: \"out1\" value: \"write:output_handle:0\" } ret { key: "
             "\"h1\" value: \"state:y:0\" } } }";
    };
    const std::string graph = placeholder("x", {-1, 9, 6}) + integers("p", {1, 0, 2}) +
                              node("t", "Transpose", {"x", "p"}) + integers("shape", {6}) +
                              node("steps", "TensorListFromTensor", {"t", "shape"}) +
                              node("out", "TensorListReserve", {"shape", "shape"}) + weight("h0", {1, 5}) +
                              variable("k", {6, 5}) + variable("r", {5, 5}) + variable("b", {5}) + integer("i", 0) +
                              node("loop", "While", {"i", "out", "h0", "steps", "k", "r", "b"},
                                   attribute("body", "func { name: \"body\" }")) +
                              node("stacked", "TensorListStack", {"loop:1", "shape"});
    BIND(m, graph + node("y", "Relu", {"stacked"}) +
                body("node_def { name: \"state\" op: \"Tanh\" input: \"all:output:0\" } "));
    QCOMPARE(m.count(OperatorKind::recurrent), std::size_t{1});
    QCOMPARE(m.result().shape, (Shape{9, 4, 5}));
    QCOMPARE(m.macs(), 9.0 * 4 * (30 + 25));
    QCOMPARE(m.model->parameters, std::int64_t{30 + 25 + 5});
    QVERIFY2(m.model->warnings.empty(), m.model->warnings.empty() ? "" : m.model->warnings[0].c_str());
    BIND(last, graph + node("y", "Relu", {"loop:2"}) +
                   body("node_def { name: \"state\" op: \"Tanh\" input: \"all:output:0\" } "));
    QCOMPARE(last.result(1).shape, (Shape{4, 5}));  // the first one is the array, which nobody reads
    QCOMPARE(last.macs(), m.macs());
    // Another operator inside, and it stays a loop that is counted once.
    BIND(other, graph + node("y", "Relu", {"stacked"}) +
                    body("node_def { name: \"state\" op: \"Softmax\" input: \"all:output:0\" } "));
    QCOMPARE(other.count(OperatorKind::recurrent), std::size_t{0});
    QCOMPARE(other.macs(), 4.0 * 30 + 25);
    QVERIFY(other.warns("counted once"));
  }

  // tf.nn.static_rnn: the same cell once per step, all with one matrix.
  void unrolled_loops() {
    const auto graph = [](bool tied) {
      std::string g = placeholder("x", {-1, 3, 6}) +
                      node("u", "Unpack", {"x"}, attribute("num", "i: 3") + attribute("axis", "i: 1")) +
                      variable("w", {6 + 5, 20}) + variable("w2", {6 + 5, 20}) + variable("b", {20}) +
                      placeholder("h0", {-1, 5}) + placeholder("c0", {-1, 5}) + integer("one", 1);
      for (int t = 0; t < 3; ++t) {
        const auto n = [&](const char* name, int step) {
          return step < 0 ? std::string(name) + "0" : std::string(name) + "_" + std::to_string(step);
        };
        g += node(n("j", t), "ConcatV2", {"u:" + std::to_string(t), n("h", t - 1), "one"}) +
             node(n("p", t), "MatMul", {n("j", t), t == 2 && !tied ? "w2" : "w"}) +
             node(n("z", t), "BiasAdd", {n("p", t), "b"}) +
             node(n("s", t), "Split", {"one", n("z", t)}, attribute("num_split", "i: 4")) +
             node(n("i", t), "Sigmoid", {n("s", t)}) + node(n("g", t), "Tanh", {n("s", t) + ":1"}) +
             node(n("f", t), "Sigmoid", {n("s", t) + ":2"}) + node(n("o", t), "Sigmoid", {n("s", t) + ":3"}) +
             node(n("k", t), "Mul", {n("c", t - 1), n("f", t)}) + node(n("a", t), "Mul", {n("i", t), n("g", t)}) +
             node(n("c", t), "Add", {n("k", t), n("a", t)}) + node(n("v", t), "Tanh", {n("c", t)}) +
             node(n("h", t), "Mul", {n("v", t), n("o", t)});
      }
      return g + node("y", "Relu", {"h_2"});
    };
    BIND(m, graph(true));
    QCOMPARE(m.count(OperatorKind::recurrent), std::size_t{1});
    QCOMPARE(m.macs(), 3.0 * 4 * 11 * 20);
    QCOMPARE(m.model->parameters, std::int64_t{11 * 20 + 20});
    QCOMPARE(m.result().shape, (Shape{4, 5}));
    QVERIFY(m.model->operators.size() < 8);
    // Another matrix in the last step: no layer, and the same work.
    BIND(loose, graph(false));
    QCOMPARE(loose.count(OperatorKind::recurrent), std::size_t{0});
    QCOMPARE(loose.macs(), m.macs());
    QCOMPARE(loose.model->parameters, std::int64_t{2 * 11 * 20 + 20});
  }

  void signatures_name_the_outputs() {
    const std::string meta =
        "graph_def { " + kDense + node("z", "Relu", {"y"}) + node("aside", "Tanh", {"y"}) +
        " } signature_def { key: \"serving_default\" value { outputs { key: \"out\" value { name: \"z:0\" } } } }";
    BIND(m, "meta_info_def { tags: \"serve\" } " + meta);
    QCOMPARE(m.model->results.size(), std::size_t{1});
    QCOMPARE(m.maker().detail, std::string("Relu"));
    BIND(saved, "saved_model_schema_version: 1 meta_graphs { " + meta + " }");
    QCOMPARE(saved.maker().detail, std::string("Relu"));
  }

  void untrained_variables_are_no_parameters() {
    const std::string nodes = placeholder("x", {-1, 6}) + variable("w", {6, 10}, "VarHandleOp") +
                              variable("offset", {10}, "VarHandleOp") + node("rw", "ReadVariableOp", {"w"}) +
                              node("ro", "ReadVariableOp", {"offset"}) + node("p", "MatMul", {"x", "rw"}) +
                              node("y", "Mul", {"p", "ro"});
    const std::string objects =
        "object_graph_def { nodes { variable { trainable: true name: \"w\" } } nodes { variable { name: \"offset\" } } "
        "}";
    BIND(m, "saved_model_schema_version: 1 meta_graphs { graph_def { " + nodes + " } " + objects + " }");
    QCOMPARE(m.model->parameters, std::int64_t{60});
    BIND(all, nodes);
    QCOMPARE(all.model->parameters, std::int64_t{70});
  }

  void unknown_operators_are_opaque_and_listed_once() {
    BIND(m, kDense + node("a", "MyOwnOp", {"y"}) + node("b", "MyOwnOp", {"a"}) + node("c", "AnotherOne", {"b"}));
    QCOMPARE(m.count(OperatorKind::opaque), std::size_t{3});
    std::size_t lists = 0;
    for (const auto& w : m.model->warnings)
      lists += w.find("MyOwnOp") != std::string::npos && w.find("AnotherOne") != std::string::npos ? 1 : 0;
    QCOMPARE(lists, std::size_t{1});
    // What the file says about its shape is believed.
    BIND(shaped, kDense + node("a", "MyOwnOp", {"y"},
                               attribute("_output_shapes", "list { shape { dim { size: -1 } dim { size: 3 } } }")));
    QCOMPARE(shaped.result().shape, (Shape{4, 3}));
  }

  void missing_inputs_are_reported() {
    BIND(m, kDense);
    const auto message = bind_graph(placeholder("x", {-1, 6}) + node("y", "MatMul", {"x", "elsewhere/weights"})).error;
    QVERIFY2(message.find("test.pbtxt: node 'y' (MatMul): 1 inputs name tensors that the file does not hold (first: "
                          "'elsewhere/weights'") != std::string::npos,
             message.c_str());
  }
};

QTEST_APPLESS_MAIN(TensorflowGraphTest)
#include "tensorflow_graph_test.moc"
