// SPDX-License-Identifier: Apache-2.0
// What today's exporters write: a batch that is baked in, folded masks and angles, tied tables stored transposed.
#include "import/onnx_bound.h"

namespace {  // one copy per test program

std::string floats(std::size_t count, float step) {
  std::string raw;
  for (std::size_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(i) * step;
    raw.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return raw;
}

ModelSourcePtr source_of(const test::Model& m) {
  const auto bytes = m.bytes();
  const auto source = open_onnx_bytes(test::as_bytes(bytes), "export.onnx");
  return source ? *source : nullptr;
}

/// A batch of `batch` that a Gather with the position of each sample has baked in.
test::Model baked(const char* batch) {
  test::Model m;
  m.input("x", {batch, "8"}).weight("layer.weight", {8, 8});
  m.node("MatMul", {"x", "layer.weight"}, {"h"});
  m.initializer(integers("shape", {std::atoll(batch) * 4, 2}));
  m.node("Reshape", {"h", "shape"}, {"wide"})
      .node("Transpose", {"wide"}, {"turned"}, {attribute("perm", list({1, 0}))});
  m.initializer(integers("again", {std::atoll(batch), 2, 4})).node("Reshape", {"turned", "again"}, {"mixed"});
  m.weight("row.bias", {std::atoll(batch), 2, 4}).node("Add", {"mixed", "row.bias"}, {"y"}).output("y");
  return m;
}

/// x W with a mask, angles, and a second, tied product.
test::Model folded(const std::string& tied, bool named = true) {
  test::Model m;
  m.input("x", {"3", "4"}, test::kInt64);
  m.initializer(test::tensor(named ? "model.table.weight" : "table", {16, 8}, test::kFloat, floats(128, 0.5f)));
  m.node("Gather", {named ? "model.table.weight" : "table", "x"}, {"h"});
  m.weight("mul_7", {3, 4, 8}).node("Mul", {"h", "mul_7"}, {"turned"});
  m.initializer(test::tensor("onnx::MatMul_9", {8, 16}, test::kFloat, tied));
  m.node("MatMul", {"turned", "onnx::MatMul_9"}, {"y"}).output("y");
  return m;
}

std::string transposed(std::size_t rows, std::size_t columns, float step) {
  std::string raw;
  for (std::size_t c = 0; c < columns; ++c)
    for (std::size_t r = 0; r < rows; ++r) {
      const float value = static_cast<float>(r * columns + c) * step;
      raw.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  return raw;
}

}  // namespace

class OnnxExportTest : public QObject {
  Q_OBJECT
 private slots:
  void a_fixed_batch_is_the_default_of_its_export() {
    test::Model m;
    m.input("x", {"3", "8"}).weight("w", {8, 4}).node("MatMul", {"x", "w"}, {"y"}).output("y");
    const auto source = source_of(m);
    QVERIFY(source);
    QCOMPARE(source->chosen_batch(), std::int64_t(3));
    QCOMPARE((*source->bind({}))->batch, std::int64_t(3));
    QVERIFY((*source->bind({}))->warnings.empty());
    QCOMPARE((*source->bind({5, 0}))->batch, std::int64_t(5));
    // A batch of 1 says nothing: what can be bound to any batch has the default of everything else.
    test::Model one;
    one.input("x", {"1", "8"}).weight("w", {8, 4}).node("MatMul", {"x", "w"}, {"y"}).output("y");
    QCOMPARE(source_of(one)->chosen_batch(), std::int64_t(0));
    QCOMPARE((*source_of(one)->bind({}))->batch, kDefaultBatch);
  }

  void a_baked_batch_stays_with_one_sentence() {
    for (const char* batch : {"1", "2"}) {
      const auto source = source_of(baked(batch));
      QVERIFY(source);
      QCOMPARE(source->chosen_batch(), std::int64_t(std::atoll(batch)));
      const auto model = source->bind({});
      QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
      QCOMPARE((*model)->batch, std::int64_t(std::atoll(batch)));
      QCOMPARE((*model)->warnings.size(), std::size_t(1));
      QVERIFY((*model)->warnings.front().find(std::string("fixes the batch at ") + batch) != std::string::npos);
      const auto other = source->bind({6, 0});
      QVERIFY(!other.has_value());
      QCOMPARE(other.error().code, ErrorCode::bad_input);
      const auto message = other.error().message();
      QVERIFY2(
          message.find(std::string("give --batch ") + batch + " or export with dynamic_shapes") != std::string::npos,
          message.c_str());
      QVERIFY(message.find("node '") != std::string::npos);
    }
  }

  void folded_masks_follow_the_batch() {
    // The table of angles has a row for each of the three samples: it is no weight, and no obstacle.
    BIND(bound, folded(floats(128, 0.25f)), 6);
    QCOMPARE(bound.result().shape, list({6, 4, 16}));
    QCOMPARE(bound.model->parameters, std::int64_t(128 + 128));
  }

  void tables_are_told_by_the_names_of_weights() {
    // A file that names no weight by its module says nothing about "mul_7": it stays a weight.
    BIND(bound, folded(floats(128, 0.25f), false), 3);
    QCOMPARE(bound.model->parameters, std::int64_t(128 + 128 + 96));
    // A name of its author's is a weight whatever reads it.
    test::Model m;
    m.input("x", {"3", "4", "8"}).weight("layer.weight", {8, 8}).weight("pos_embed", {1, 4, 8});
    m.node("MatMul", {"x", "layer.weight"}, {"h"}).node("Add", {"h", "pos_embed"}, {"y"}).output("y");
    BIND(named, m, 3);
    QCOMPARE(named.model->parameters, std::int64_t(64 + 32));
  }

  void frequencies_of_rotary_positions_are_no_weights() {
    test::Model m;
    m.input("x", {"batch", "4", "8"}).weight("rotary.inv_freq", {8}).weight("w", {8});
    m.initializer(test::number("two", 2)).node("Mul", {"rotary.inv_freq", "two"}, {"angle"});
    m.node("Cos", {"angle"}, {"cos"}).node("Mul", {"x", "cos"}, {"turned"}).node("Mul", {"turned", "w"}, {"y"});
    m.output("y");
    BIND(bound, m);
    QCOMPARE(bound.model->parameters, std::int64_t(8));
  }

  void buffers_of_positions_are_no_weights() {
    test::Model m;
    m.input("x", {"batch", "4"}, test::kInt64).weight("h.0.attn.embed_positions", {16, 8}).weight("w.weight", {16, 8});
    m.node("Gather", {"h.0.attn.embed_positions", "x"}, {"sines"}).node("Gather", {"w.weight", "x"}, {"h"});
    m.node("Mul", {"h", "sines"}, {"y"}).output("y");
    BIND(bound, m);
    QCOMPARE(bound.model->parameters, std::int64_t(128));
  }

  void a_tied_table_stored_transposed_counts_once() {
    BIND(tied, folded(transposed(16, 8, 0.5f)), 3);
    QCOMPARE(tied.model->parameters, std::int64_t(128));
    QCOMPARE(tied.result().shape, list({3, 4, 16}));
    BIND(other, folded(transposed(16, 8, 0.25f)), 3);
    QCOMPARE(other.model->parameters, std::int64_t(256));
    // Matrices of zeros resemble each other without being tied.
    test::Model m;
    const std::string zeros(512, '\0');
    m.input("x", {"3", "8"}).initializer(test::tensor("a", {8, 16}, test::kFloat, zeros));
    m.initializer(test::tensor("b", {16, 8}, test::kFloat, zeros));
    m.node("MatMul", {"x", "a"}, {"h"}).node("MatMul", {"h", "b"}, {"y"}).output("y");
    BIND(zero, m, 3);
    QCOMPARE(zero.model->parameters, std::int64_t(256));
  }

  void a_class_token_folded_for_the_batch_is_one_row() {
    test::Model m;
    m.input("x", {"3", "4", "8"}).weight("layer.weight", {8, 8}).weight("expand", {3, 1, 8});
    m.node("MatMul", {"x", "layer.weight"}, {"h"});
    m.node("Concat", {"expand", "h"}, {"y"}, {attribute("axis", std::int64_t(1))}).output("y");
    for (const std::int64_t batch : {3, 6}) {
      BIND(bound, m, batch);
      QCOMPARE(bound.model->parameters, std::int64_t(64 + 8));
      QCOMPARE(bound.result().shape, list({batch, 5, 8}));
    }
  }

  void cast_like_folds() {
    // Range(0, CastLike(n, x), 1) of constants, as unoptimised graphs of torch.export write it.
    test::Model m(18);
    m.input("x", {"batch", "6"}).initializer(test::number("n", 6)).initializer(integers("like", {0}));
    m.initializer(test::integer("zero", 0)).initializer(test::integer("one", 1));
    m.node("CastLike", {"n", "like"}, {"end"}).node("Range", {"zero", "end", "one"}, {"steps"});
    m.node("Cast", {"steps"}, {"row"}, {attribute("to", std::int64_t(1))}).node("Add", {"x", "row"}, {"y"}).output("y");
    BIND(bound, m);
    QCOMPARE(bound.result().shape, list({4, 6}));
    QCOMPARE(bound.model->parameters, std::int64_t(0));
    // Only the type of the second input is asked: it may be data.
    test::Model like(18);
    like.input("x", {"batch", "6"}).initializer(test::integer("n", 3)).initializer(test::number("half", 0.5f));
    like.node("CastLike", {"n", "x"}, {"three"}).node("Mul", {"three", "half"}, {"half_of"});
    like.node("Cast", {"half_of"}, {"whole"}, {attribute("to", std::int64_t(7))}).initializer(integers("axes", {0}));
    like.node("Unsqueeze", {"whole", "axes"}, {"repeat"}).initializer(integers("once", {1}));
    like.node("Concat", {"repeat", "once"}, {"repeats"}, {attribute("axis", std::int64_t(0))});
    like.node("Tile", {"x", "repeats"}, {"y"}).output("y");
    BIND(typed, like);
    QCOMPARE(typed.result().shape, list({4, 6}));
  }

  void clipped_sizes_fold() {
    test::Model m(18);
    m.input("x", {"batch", "6"}).initializer(test::integer("n", 9)).initializer(test::integer("most", 6));
    m.initializer(test::integer("zero", 0)).initializer(test::integer("one", 1));
    m.node("Clip", {"n", "zero", "most"}, {"end"}).node("Range", {"zero", "end", "one"}, {"steps"});
    m.node("Cast", {"steps"}, {"row"}, {attribute("to", std::int64_t(1))}).node("Add", {"x", "row"}, {"y"}).output("y");
    BIND(bound, m);
    QCOMPARE(bound.result().shape, list({4, 6}));
  }

  void nothing_joined_to_something_is_nothing() {
    // The rest of the channels after a rotation over all of them.
    test::Model m;
    m.input("x", {"batch", "8"}).initializer(integers("from", {8})).initializer(integers("to", {100}));
    m.initializer(integers("last", {1})).node("Slice", {"x", "from", "to", "last"}, {"rest"});
    m.node("Relu", {"x"}, {"turned"});
    m.node("Concat", {"turned", "rest"}, {"y"}, {attribute("axis", std::int64_t(1))}).output("y");
    BIND(bound, m);
    QCOMPARE(bound.result().shape, list({4, 8}));
  }

  void parts_of_a_sequence() {
    // What torch.export writes for chunk() without its optimiser.
    for (const bool listed : {false, true}) {
      test::Model m(18);
      m.input("x", {"batch", "12"}).weight("w", {12, 12}).node("MatMul", {"x", "w"}, {"h"});
      m.initializer(listed ? integers("size", {8, 4}) : test::integer("size", 8));
      m.node("SplitToSequence", {"h", "size"}, {"parts"}, {attribute("axis", std::int64_t(-1))});
      m.initializer(test::integer("second", -1)).node("SequenceAt", {"parts", "second"}, {"y"}).output("y");
      BIND(bound, m);
      QCOMPARE(bound.result().shape, list({4, 4}));
      QVERIFY(bound.model->warnings.empty());
    }
    test::Model beyond(18);
    beyond.input("x", {"batch", "12"}).initializer(test::integer("size", 6)).initializer(test::integer("third", 2));
    beyond.node("SplitToSequence", {"x", "size"}, {"parts"}, {attribute("axis", std::int64_t(-1))});
    beyond.node("SequenceAt", {"parts", "third"}, {"y"}).output("y");
    QVERIFY(bind(beyond).error.find("beyond the end") != std::string::npos);
  }

  void weights_among_inputs_are_told_from_masks() {
    const auto model = [](const char* table, bool weights) {
      test::Model m;
      m.input("x", {"3", "4", "8"}).input("token", {"1", "1", "8"}).input(table, {"1", "5", "8"});
      if (weights) m.input("w", {"8", "8"});
      if (!weights) m.weight("w", {8, 8});
      m.node("MatMul", {"x", "w"}, {"h"}).initializer(integers("shape", {3, 1, 8}));
      m.node("Expand", {"token", "shape"}, {"tokens"});
      m.node("Concat", {"tokens", "h"}, {"joined"}, {attribute("axis", std::int64_t(1))});
      m.node("Add", {"joined", table}, {"y"}).output("y");
      return m;
    };
    BIND(named, model("position", true), 3);
    QCOMPARE(named.model->parameters, std::int64_t(64 + 8 + 40));
    BIND(mask, model("attention_mask", true), 3);
    QCOMPARE(mask.model->parameters, std::int64_t(64 + 8));
    // Without a weight among the inputs, all inputs are data.
    BIND(data, model("position", false), 3);
    QCOMPARE(data.model->parameters, std::int64_t(64));
  }

  void filled_constants_that_stand_for_weights() {
    const auto model = [](bool weight_slot) {
      test::Model m;
      m.input("x", {"batch", "3", "6", "6"})
          .initializer(integers("three", {3}))
          .initializer(integers("all", {3, 3, 1, 1}));
      m.node("ConstantOfShape", {"three"}, {"scale"}).node("ConstantOfShape", {"three"}, {"shift"});
      m.node("ConstantOfShape", {"all"}, {"kernel"}).weight("own", {3, 3, 1, 1});
      m.node("Conv", {"x", weight_slot ? "kernel" : "own"}, {"h"}).initializer(integers("axes", {1, 2}));
      m.node("Unsqueeze", {"scale", "axes"}, {"wide"}).node("Mul", {"h", "wide"}, {"scaled"});
      m.node("Unsqueeze", {"shift", "axes"}, {"tall"}).node("Add", {"tall", "scaled"}, {"y"}).output("y");
      return m;
    };
    BIND(light, model(true));
    QCOMPARE(light.model->parameters, std::int64_t(9 + 3 + 3));
    BIND(plain, model(false));
    QCOMPARE(plain.model->parameters, std::int64_t(9));
  }

  void eight_bit_weights_are_said() {
    test::Model m;
    m.input("x", {"batch", "8"}).initializer(test::tensor("w", {8, 4}, 3, std::string(32, '\1')));
    m.initializer(test::number("scale", 0.1f)).node("DequantizeLinear", {"w", "scale"}, {"real"});
    m.node("MatMul", {"x", "real"}, {"y"}).output("y");
    BIND(bound, m);
    QCOMPARE(bound.model->warnings.size(), std::size_t(1));
    QVERIFY(bound.model->warnings.front().find("32 elements of 8-bit tensors") == 0);
  }
};

QTEST_APPLESS_MAIN(OnnxExportTest)
#include "onnx_export_test.moc"
