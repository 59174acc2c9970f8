// SPDX-License-Identifier: Apache-2.0
// Programs of torch.export: what of them becomes which operator, which batch, and how many parameters.
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <map>

#include "core/import/source/model_source.h"
#include "tests/import/torch_archive.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

using P = TorchProgram;
using Shape = std::vector<std::int64_t>;

Expected<ModelPtr> bound(const TorchProgram& program, ModelBinding binding = {}) {
  const auto source = opened_program(program);
  if (!source) return source.error();
  return (*source)->bind(binding);
}

std::map<std::string, int> kinds_of(const Model& model) {
  std::map<std::string, int> counts;
  for (const auto& op : model.operators) ++counts[op.detail];
  return counts;
}

/// The tensor that an operator of this name makes.
const Tensor* made_by(const Model& model, const std::string& name) {
  for (const auto& op : model.operators)
    if (op.name == name) return &model.tensors[op.outputs[0].tensor];
  return nullptr;
}

const Operator* named(const Model& model, const std::string& part) {
  for (const auto& op : model.operators)
    if (op.name.find(part) != std::string::npos) return &op;
  return nullptr;
}

/// Convolution, normalisation, activation, pool and classes, exported at a batch of 2.
TorchProgram network(const std::string& batch) {
  P p;
  p.parameter("p_conv_weight", "body.conv.weight", {"8", "3", "3", "3"});
  p.parameter("p_norm_weight", "body.norm.weight", {"8"}).parameter("p_norm_bias", "body.norm.bias", {"8"});
  p.parameter("p_fc_weight", "fc.weight", {"10", "8"}).parameter("p_fc_bias", "fc.bias", {"10"});
  p.buffer("b_mean", "body.norm.running_mean", {"8"}).buffer("b_var", "body.norm.running_var", {"8"});
  p.data("x", {batch, "3", "32", "32"});
  for (const char* name : {"conv2d", "batch_norm", "relu_"}) p.tensor(name, {batch, "8", "16", "16"});
  p.tensor("pool", {batch, "8", "1", "1"}).tensor("flat", {batch, "8"}).tensor("linear", {batch, "10"});
  p.node("aten.conv2d.default",
         {{"input", P::of("x")}, {"weight", P::of("p_conv_weight")}, {"bias", R"({"as_none": true})"},
          {"stride", P::ints("2, 2")}, {"padding", P::ints("1, 1")}},
         {"conv2d"}, "body.conv");
  p.node("aten.batch_norm.default",
         {{"input", P::of("conv2d")}, {"weight", P::of("p_norm_weight")}, {"bias", P::of("p_norm_bias")},
          {"running_mean", P::of("b_mean")}, {"running_var", P::of("b_var")}, {"training", R"({"as_bool": false})"}},
         {"batch_norm"}, "body.norm");
  p.node("aten.relu_.default", {{"self", P::of("batch_norm")}}, {"relu_"}, "body");
  p.node("aten.adaptive_avg_pool2d.default", {{"self", P::of("relu_")}, {"output_size", P::ints("1, 1")}}, {"pool"});
  p.node("aten.flatten.using_ints", {{"self", P::of("pool")}, {"start_dim", P::whole(1)}}, {"flat"});
  p.node("aten.linear.default",
         {{"input", P::of("flat")}, {"weight", P::of("p_fc_weight")}, {"bias", P::of("p_fc_bias")}}, {"linear"}, "fc");
  return p.result("linear");
}

constexpr std::int64_t kNetwork = 8 * 3 * 9 + 2 * 8 + 8 * 10 + 10;

/// Tokens, a product to three parts, attention by heads, a product back; batch and sequence may be symbols.
TorchProgram attention(bool dynamic) {
  const std::string b = dynamic ? "s1" : "2", s = dynamic ? "s2" : "16";
  const std::string size_b = dynamic ? R"({"as_name": "nb"})" : "2", size_s = dynamic ? R"({"as_name": "ns"})" : "16";
  const auto sizes = [&](const std::string& rest) {
    if (!dynamic) return P::ints("2, 16, " + rest);
    std::string list;
    for (std::size_t at = 0; at < rest.size();) {
      const auto end = std::min(rest.find(", ", at), rest.size());
      list += R"(, {"as_int": )" + rest.substr(at, end - at) + "}";
      at = end + 2;
    }
    return R"({"as_sym_ints": [)" + size_b + ", " + size_s + list + "]}";
  };
  P p;
  p.parameter("p_wte", "wte.weight", {"100", "32"}).parameter("p_qkv", "attn.qkv.weight", {"96", "32"});
  p.parameter("p_out", "attn.out.weight", {"32", "32"}).parameter("p_norm", "norm.weight", {"32"});
  p.data("ids", {b, s}, 5);
  if (dynamic)
    for (const auto& [name, dim] : {std::pair("nb", 0), std::pair("ns", 1)})
      p.number("aten.sym_size.int", {{"self", P::of("ids")}, {"dim", P::whole(dim)}}, name);
  for (const char* name : {"embedding", "q", "k", "v", "joined", "linear_1", "norm"}) p.tensor(name, {b, s, "32"});
  p.tensor("linear", {b, s, "96"}).tensor("logits", {b, s, "100"});
  for (const char* name : {"q_heads", "k_heads", "v_heads", "back"}) p.tensor(name, {b, s, "4", "8"});
  for (const char* name : {"q_turned", "k_turned", "v_turned", "sdpa"}) p.tensor(name, {b, "4", s, "8"});
  p.node("aten.embedding.default", {{"weight", P::of("p_wte")}, {"indices", P::of("ids")}}, {"embedding"}, "wte");
  p.node("aten.linear.default", {{"input", P::of("embedding")}, {"weight", P::of("p_qkv")}}, {"linear"}, "attn.qkv");
  p.node("aten.split.Tensor", {{"self", P::of("linear")}, {"split_size", P::whole(32)}, {"dim", P::whole(-1)}},
         {"q", "k", "v"}, "attn");
  for (const std::string part : {"q", "k", "v"}) {
    p.node("aten.view.default", {{"self", P::of(part)}, {"size", sizes("4, 8")}}, {part + "_heads"}, "attn");
    p.node("aten.transpose.int", {{"self", P::of(part + "_heads")}, {"dim0", P::whole(1)}, {"dim1", P::whole(2)}},
           {part + "_turned"}, "attn");
  }
  p.node("aten.scaled_dot_product_attention.default",
         {{"query", P::of("q_turned")}, {"key", P::of("k_turned")}, {"value", P::of("v_turned")}}, {"sdpa"}, "attn");
  p.node("aten.transpose.int", {{"self", P::of("sdpa")}, {"dim0", P::whole(1)}, {"dim1", P::whole(2)}}, {"back"}, "attn");
  p.node("aten.reshape.default", {{"self", P::of("back")}, {"shape", sizes("-1")}}, {"joined"}, "attn");
  p.node("aten.linear.default", {{"input", P::of("joined")}, {"weight", P::of("p_out")}}, {"linear_1"}, "attn.out");
  p.node("aten.rms_norm.default",
         {{"input", P::of("linear_1")}, {"normalized_shape", P::ints("32")}, {"weight", P::of("p_norm")}}, {"norm"}, "norm");
  p.node("aten.linear.default", {{"input", P::of("norm")}, {"weight", P::of("p_wte")}}, {"logits"}, "head");
  return p.result("logits");
}

}  // namespace

class TorchProgramTest : public QObject {
  Q_OBJECT

 private slots:
  void a_convolutional_network_at_any_batch() {
    const auto own = bound(network("2"), {2, 0}), other = bound(network("2"), {64, 0});
    QVERIFY2(own && other, own ? "" : own.error().message().c_str());
    QCOMPARE((*own)->parameters, kNetwork);
    QCOMPARE((*other)->parameters, kNetwork);
    const auto* y = made_by(**other, "body/conv/conv2d");
    QVERIFY(y);
    QCOMPARE(y->shape, (Shape{64, 8, 16, 16}));
    const auto* op = named(**other, "body/conv/conv2d");
    QCOMPARE(op->forward_macs, 64.0 * 8 * 16 * 16 * 3 * 9);
    QCOMPARE((*opened_program(network("2")))->chosen_batch(), std::int64_t(2));
    // Running statistics are there, and nothing trains them.
    int buffers = 0;
    for (const auto& tensor : (*own)->tensors) buffers += tensor.role == TensorRole::buffer;
    QCOMPARE(buffers, 2);
  }

  void a_free_batch_is_found() {
    const auto source = opened_program(network("s77"));
    QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
    QCOMPARE((*source)->chosen_batch(), std::int64_t(0));
    const auto model = (*source)->bind({5, 0});
    QVERIFY(model.has_value());
    QCOMPARE((*model)->batch, std::int64_t(5));
    QCOMPARE(made_by(**model, "body/conv/conv2d")->shape, (Shape{5, 8, 16, 16}));
  }

  void attention_with_free_sizes_and_a_tied_table() {
    for (const bool dynamic : {false, true}) {
      const auto model = bound(attention(dynamic), {8, dynamic ? 24 : 0});
      QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
      QCOMPARE((*model)->parameters, std::int64_t(100 * 32 + 96 * 32 + 32 * 32 + 32));  // the table counts once
      const std::int64_t s = dynamic ? 24 : 16;
      const auto* scores = made_by(**model, "attn/sdpa/scores");
      QVERIFY(scores);
      QCOMPARE(scores->shape, (Shape{8, 4, s, s}));
      QCOMPARE(kinds_of(**model)["RMSNormalization"], 1);
    }
  }

  void what_was_changed_in_place_is_read_as_changed() {
    P p;
    p.data("x", {"4", "8"}).tensor("h", {"4", "8"}).tensor("tanh_", {"4", "8"}).tensor("y", {"4", "8"});
    p.parameter("w", "fc.weight", {"8", "8"});
    p.node("aten.linear.default", {{"input", P::of("x")}, {"weight", P::of("w")}}, {"h"});
    p.node("aten.tanh_.default", {{"self", P::of("h")}}, {"tanh_"});
    p.node("aten.neg.default", {{"self", P::of("h")}}, {"y"}).result("y");
    const auto model = bound(p, {4, 0});
    QVERIFY(model.has_value());
    const auto* op = named(**model, "y");
    QVERIFY(op);
    QCOMPARE((*model)->operators[(*model)->tensors[op->inputs[0].tensor].producer].detail, std::string("Tanh"));
  }

  // no_grad and autocast around a part of the module become graphs inside the graph.
  void an_inner_graph_is_part_of_the_outer_one() {
    P p;
    p.data("x", {"4", "8"}).tensor("outer", {"4", "8"}).tensor("y", {"4", "8"}).buffer("b", "scale", {"8"});
    const std::string inner =
        R"({"as_graph": {"name": "submod_1", "graph": {"inputs": [)" + P::of("x") + ", " + P::of("b") + R"(], "outputs": [)" +
        P::of("sin") + R"(], "nodes": [)" +
        P::made_node("aten.mul.Tensor", {{"self", P::of("x")}, {"other", P::of("b")}}, {"mul"}, "") + ", " +
        P::made_node("aten.sin.default", {{"self", P::of("mul")}}, {"sin"}, "") +
        R"(], "tensor_values": {"mul": {"dtype": 7, "sizes": [{"as_int": 4}, {"as_int": 8}]}}}}})";
    p.node("higher_order.wrap_with_set_grad_enabled",
           {{"", R"({"as_bool": false})"}, {"", inner}, {"", P::of("x")}, {"", P::of("b")}}, {"outer"});
    p.node("aten.exp.default", {{"self", P::of("outer")}}, {"y"}).result("y");
    const auto model = bound(p, {4, 0});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    const auto counts = kinds_of(**model);
    QVERIFY(counts.count("Sin") && counts.count("Exp") && counts.count("Mul"));
    QCOMPARE((*model)->parameters, std::int64_t(0));
  }

  // Exports at a fixed batch fill masks for it and count its rows out; a mask chosen by them grows with the batch.
  void a_batch_that_the_graph_counts_out_is_any_other_too() {
    P p;
    p.data("x", {"3", "5", "8"}).tensor("rows", {"3"}, 5).tensor("column", {"3", "1"}, 5).tensor("places", {"5"}, 5);
    p.tensor("ones", {"3", "5"}).tensor("mask", {"3", "5"}).tensor("last", {"3", "5", "1"}).tensor("y", {"3", "5", "8"});
    p.node("aten.arange.default", {{"end", P::whole(3)}}, {"rows"}).node("aten.arange.default", {{"end", P::whole(5)}}, {"places"});
    p.node("aten.unsqueeze.default", {{"self", P::of("rows")}, {"dim", P::whole(1)}}, {"column"});
    p.node("aten.ones.default", {{"size", P::ints("3, 5")}}, {"ones"});
    p.node("aten.index.Tensor", {{"self", P::of("ones")}, {"indices", P::list({"column", "places"})}}, {"mask"});
    p.node("aten.unsqueeze.default", {{"self", P::of("mask")}, {"dim", P::whole(2)}}, {"last"});
    p.node("aten.mul.Tensor", {{"self", P::of("x")}, {"other", P::of("last")}}, {"y"}).result("y");
    const auto source = opened_program(p);
    QVERIFY(source.has_value());
    QCOMPARE((*source)->chosen_batch(), std::int64_t(3));
    for (const std::int64_t batch : {3, 12}) {
      const auto model = (*source)->bind({batch, 0});
      QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
      QCOMPARE(made_by(**model, "y")->shape, (Shape{batch, 5, 8}));
    }
  }

  void a_window_that_reaches_beyond_its_input_is_the_whole() {
    P p;
    p.data("x", {"2", "4", "7", "7"}).tensor("y", {"2", "4", "1", "1"});
    p.node("aten.avg_pool2d.default", {{"self", P::of("x")}, {"kernel_size", P::ints("9, 9")}, {"ceil_mode", R"({"as_bool": true})"}}, {"y"});
    const auto model = bound(p.result("y"), {6, 0});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    QCOMPARE(made_by(**model, "y")->shape, (Shape{6, 4, 1, 1}));
  }

  // A mask costs nothing; a bias of distances that is trained is a parameter and is added.
  void a_trained_bias_of_attention_counts() {
    for (const bool trained : {false, true}) {
      P p;
      p.data("x", {"2", "4", "6", "8"}).tensor("row", {"4", "6", "6"}).tensor("bias", {"1", "4", "6", "6"}).tensor("y", {"2", "4", "6", "8"});
      if (trained)
        p.parameter("table", "attn.distances", {"30", "4", "6"}).tensor("rows", {"6", "4", "6"});
      else
        p.buffer("table", "attn.mask", {"30", "4", "6"}).tensor("rows", {"6", "4", "6"});
      p.buffer("places", "attn.places", {"6"}).tensor("places", {"6"}, 5);
      p.node("aten.index.Tensor", {{"self", P::of("table")}, {"indices", P::list({"places"})}}, {"rows"});
      p.node("aten.permute.default", {{"self", P::of("rows")}, {"dims", P::ints("1, 0, 2")}}, {"row"});
      p.node("aten.unsqueeze.default", {{"self", P::of("row")}, {"dim", P::whole(0)}}, {"bias"});
      p.node("aten.scaled_dot_product_attention.default",
             {{"query", P::of("x")}, {"key", P::of("x")}, {"value", P::of("x")}, {"attn_mask", P::of("bias")}}, {"y"});
      p.result("y");
      const auto model = bound(p, {2, 0});
      QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
      QCOMPARE((*model)->parameters, std::int64_t(trained ? 30 * 4 * 6 : 0));
      QCOMPARE(kinds_of(**model)["Add"], trained ? 1 : 0);
    }
  }

  void layers_of_a_recurrence_have_weights_of_their_own() {
    P p;
    p.data("x", {"2", "7", "16"}).tensor("y", {"2", "7", "64"}).tensor("h", {"4", "2", "32"}).tensor("c", {"4", "2", "32"});
    p.tensor("h0", {"4", "2", "32"});
    std::vector<std::string> names;
    for (const char* part : {"l0", "l0_reverse", "l1", "l1_reverse"}) {
      const std::string in = std::string(part).starts_with("l0") ? "16" : "64";
      const std::string end = part;
      p.parameter("w_ih_" + end, "rnn.weight_ih_" + end, {"128", in}).parameter("w_hh_" + end, "rnn.weight_hh_" + end, {"128", "32"});
      p.parameter("b_ih_" + end, "rnn.bias_ih_" + end, {"128"}).parameter("b_hh_" + end, "rnn.bias_hh_" + end, {"128"});
      for (const char* kind : {"w_ih_", "w_hh_", "b_ih_", "b_hh_"}) names.push_back(kind + end);
    }
    p.node("aten.zeros.default", {{"size", P::ints("4, 2, 32")}}, {"h0"});
    p.node("aten.lstm.input",
           {{"input", P::of("x")}, {"hx", P::list({"h0", "h0"})}, {"params", P::list(names)}, {"has_biases", R"({"as_bool": true})"},
            {"num_layers", P::whole(2)}, {"bidirectional", R"({"as_bool": true})"}, {"batch_first", R"({"as_bool": true})"}},
           {"y", "h", "c"}, "rnn");
    p.result("y");
    const auto model = bound(p, {2, 0});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    QCOMPARE((*model)->parameters, std::int64_t(2 * 128 * (16 + 32 + 2) + 2 * 128 * (64 + 32 + 2)));
    QCOMPARE(kinds_of(**model)["LSTM"], 2);
  }

  void views_keep_their_shapes_data() {
    QTest::addColumn<QString>("target");
    QTest::addColumn<QString>("arguments");
    QTest::addColumn<QString>("sizes");
    const auto row = [](const char* target, const std::string& arguments, const char* sizes) {
      QTest::newRow(target) << QString(target) << QString::fromStdString(arguments) << QString(sizes);
    };
    // Of x [2, 6, 8], at batch 10.
    row("aten.permute.default", "dims=" + P::ints("0, 2, 1"), "10,8,6");
    row("aten.unsqueeze.default", "dim=" + P::whole(-1), "10,6,8,1");
    row("aten.unflatten.int", "dim=" + P::whole(2) + ";sizes=" + P::ints("2, 4"), "10,6,2,4");
    row("aten.flatten.using_ints", "start_dim=" + P::whole(1) + ";end_dim=" + P::whole(2), "10,48");
    row("aten.select.int", "dim=" + P::whole(1) + ";index=" + P::whole(0), "10,8");
    row("aten.slice.Tensor", "dim=" + P::whole(2) + ";start=" + P::whole(2) + ";end=" + P::whole(6), "10,6,4");
    row("aten.narrow.default", "dim=" + P::whole(2) + ";start=" + P::whole(-3) + ";length=" + P::whole(3), "10,6,3");
    row("aten.mean.dim", "dim=" + P::ints("-1") + R"(;keepdim={"as_bool": true})", "10,6,1");
    row("aten.sum.dim_IntList", "dim=" + P::ints("1"), "10,8");
    row("aten.roll.default", "shifts=" + P::ints("3") + ";dims=" + P::ints("1"), "10,6,8");
    row("aten.pad.default", "pad=" + P::ints("1, 2, 0, 3"), "10,9,11");
    row("aten.repeat.default", "repeats=" + P::ints("1, 2, 1"), "10,12,8");
    row("aten.repeat_interleave.self_int", "repeats=" + P::whole(3) + ";dim=" + P::whole(1), "10,18,8");
    row("aten.expand_as.default", "other=" + P::of("x"), "10,6,8");
    row("aten.expand.default", "size=" + P::ints("3, -1, -1, -1"), "3,10,6,8");
    row("aten.cumsum.default", "dim=" + P::whole(1), "10,6,8");
    row("aten.argmax.default", "dim=" + P::whole(2), "10,6");
    row("aten.diff.default", "dim=" + P::whole(1), "10,5,8");
    row("aten.to.dtype", R"(dtype={"as_scalar_type": 6})", "10,6,8");
    row("aten.pow.Tensor_Scalar", R"(exponent={"as_float": 2.0})", "10,6,8");
    row("aten.rsub.Scalar", "other=" + P::whole(1), "10,6,8");
    row("aten.rsqrt.default", "", "10,6,8");
    row("aten.gelu.default", R"(approximate={"as_string": "tanh"})", "10,6,8");
    row("aten.clamp.default", "min=" + P::whole(0), "10,6,8");
    row("aten.topk.default", "k=" + P::whole(3) + ";dim=" + P::whole(1), "10,3,8");
  }
  void views_keep_their_shapes() {
    QFETCH(QString, target);
    QFETCH(QString, arguments);
    QFETCH(QString, sizes);
    P p;
    p.data("x", {"2", "6", "8"}).tensor("y", {"2", "6", "8"}, target.contains("to.dtype") ? 6 : 7).tensor("z", {"2", "6", "8"});
    std::vector<std::pair<std::string, std::string>> given{{"self", P::of("x")}};
    for (const QString& one : arguments.split(u';', Qt::SkipEmptyParts))
      given.emplace_back(one.section(u'=', 0, 0).toStdString(), one.section(u'=', 1).toStdString());
    p.node(target.toStdString(), given, {"y"}).node("aten.exp.default", {{"self", P::of("y")}}, {"z"}).result("z");
    const auto model = bound(p, {10, 0});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    QStringList found;
    for (const auto size : (*model)->tensors[named(**model, "z")->outputs[0].tensor].shape) found += QString::number(size);
    QCOMPARE(found.join(u','), sizes);
  }

  void operators_without_a_handler_are_all_named() {
    P p = network("2");
    p.tensor("odd", {"2", "10"}).tensor("odder", {"2", "10"});
    p.node("aten.fft_fft.default", {{"self", P::of("linear")}}, {"odd"});
    p.node("mylib.special.default", {{"self", P::of("odd")}}, {"odder"});
    const auto source = opened_program(p);
    QVERIFY(!source.has_value());
    const std::string words = source.error().message();
    for (const char* part : {"net.pt2", "aten.fft_fft.default, mylib.special.default", "torch.onnx.export"})
      QVERIFY2(words.find(part) != std::string::npos, words.c_str());
  }

  void a_file_opens_by_its_content() {
    QTemporaryDir folder;
    const QString path = folder.filePath("model.bin");
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    const std::string text = TorchArchive(true).add("net/models/model.json", network("2").json()).text();
    file.write(text.data(), qint64(text.size()));
    file.close();
    const auto source = open_model(path.toStdString());
    QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
    QCOMPARE((*(*source)->bind({}))->batch, std::int64_t(2));
    QCOMPARE(open_model(path.toStdString() + "?as=llama").error().code, ErrorCode::usage);
  }
};

QTEST_APPLESS_MAIN(TorchProgramTest)
#include "torch_program_test.moc"
