// SPDX-License-Identifier: Apache-2.0
// Broken and hostile ONNX files: one clear message, quickly and in little memory, never a crash.
// Time is that of the processor, so that a busy machine does not fail the test.
#include <sys/resource.h>

#include <QTemporaryDir>
#include <QtTest>
#include <ctime>
#include <fstream>
#include <limits>
#include <set>

#include "core/import/onnx/onnx_source.h"
#include "onnx_writer.h"
#include "sanitized.h"
#include "test_data.h"

using namespace turnpoint;
using test::Message;

namespace {

/// The message that opening and binding ends with; empty if both succeed.
std::string outcome(const std::string& bytes, std::int64_t batch = 4) {
  const auto source = open_onnx_bytes(test::as_bytes(bytes), "bad.onnx");
  if (!source) return source.error().message();
  const auto model = (*source)->bind({batch, 8});
  return model ? std::string() : model.error().message();
}

test::Model tiny() {
  test::Model m;
  m.input("x", {"batch", "8"}).weight("w", {8, 4}).node("MatMul", {"x", "w"}, {"y"}, {}, "product").output("y");
  return m;
}

std::string numbered(const char* prefix, int number) {
  std::string text(prefix);
  return text.append(std::to_string(number));
}

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

#define EXPECT_MESSAGE(bytes, ...)                                                                    \
  do {                                                                                                \
    const auto begin = std::clock();                                                                  \
    const std::string message = outcome(bytes);                                                       \
    QVERIFY2(!message.empty(), "accepted");                                                           \
    for (const std::string& part : std::vector<std::string>{"bad.onnx", __VA_ARGS__})                 \
      QVERIFY2(message.find(part) != std::string::npos, (message + " lacks '" + part + "'").c_str()); \
    QVERIFY2(std::clock() - begin < 5 * CLOCKS_PER_SEC, "took more than five seconds");               \
  } while (false)

class OnnxMalformedTest : public QObject {
  Q_OBJECT
 private slots:
  void a_sound_file_passes() { QCOMPARE(outcome(tiny().bytes()), std::string()); }

  void truncated_anywhere() {
    const auto whole = tiny().bytes();
    for (std::size_t size = 0; size < whole.size(); ++size)
      QVERIFY2(!outcome(whole.substr(0, size)).empty(), std::to_string(size).c_str());
  }

  void no_protobuf() {
    EXPECT_MESSAGE(std::string("{\"format\": \"json\"}"), "damaged");
    EXPECT_MESSAGE(std::string("\x08\x07", 2), "no graph");
    EXPECT_MESSAGE(std::string(64, '\xff'), "damaged");
  }

  void absurd_lengths() {
    EXPECT_MESSAGE(Message().tag(7, 2).varint(~0ull).bytes(), "damaged");
    EXPECT_MESSAGE(Message().tag(7, 2).varint(1ull << 63).raw("abc").bytes(), "damaged");
    EXPECT_MESSAGE(Message().message(7, Message().tag(1, 2).varint(0x7fffffff).raw("x")).bytes(), "damaged", "graph");
    EXPECT_MESSAGE(std::string("\x3a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 13),
                   "damaged");                               // a varint of 12 bytes
    EXPECT_MESSAGE(Message().tag(7, 3).bytes(), "damaged");  // a group
  }

  void broken_node_is_named() {
    auto m = tiny();
    m.graph().message(1, Message().text(3, "the broken one").tag(5, 2).varint(500));
    EXPECT_MESSAGE(m.bytes(), "the broken one", "damaged");
  }

  void dangling_inputs() {
    test::Model m;
    m.input("x", {"batch", "8"}).node("Add", {"x", "nowhere"}, {"y"}, {}, "adder").output("y");
    EXPECT_MESSAGE(m.bytes(), "adder", "'nowhere'");
    test::Model result;
    result.input("x", {"batch", "8"}).node("Relu", {"x"}, {"y"}).output("z");
    EXPECT_MESSAGE(result.bytes(), "'z'");
  }

  void cycles() {
    test::Model m;
    m.input("x", {"batch", "8"})
        .node("Add", {"x", "b"}, {"a"}, {}, "first")
        .node("Relu", {"a"}, {"b"}, {}, "second")
        .output("b");
    EXPECT_MESSAGE(m.bytes(), "cycle", "first");
    test::Model own;
    own.input("x", {"batch", "8"}).node("Add", {"x", "y"}, {"y"}, {}, "itself").output("y");
    EXPECT_MESSAGE(own.bytes(), "cycle", "itself");
  }

  void nodes_out_of_order_are_sorted() {
    test::Model m;
    m.input("x", {"batch", "8"}).node("Relu", {"a"}, {"y"}).node("Sigmoid", {"x"}, {"a"}).output("y");
    QCOMPARE(outcome(m.bytes()), std::string());
  }

  void huge_dimensions() {
    test::Model big;
    big.input("x", {"batch", "8"})
        .weight("w", {1'000'000'000, 1'000'000'000, 1'000'000'000})
        .node("MatMul", {"x", "w"}, {"y"}, {}, "product")
        .output("y");
    EXPECT_MESSAGE(big.bytes(), "'w'", "10^18");  // 10^27 elements
    test::Model negative;
    negative.input("x", {"batch", "8"}).weight("w", {-8, 4}).node("MatMul", {"x", "w"}, {"y"}).output("y");
    EXPECT_MESSAGE(negative.bytes(), "'w'", "impossible dimension");
    test::Model grown;  // each step is harmless, the product is not
    grown.input("x", {"batch", "1000000000"})
        .initializer(test::integers("shape", {1'000'000'000, 1'000'000'000, 1'000'000'000}));
    grown.node("Expand", {"x", "shape"}, {"y"}, {}, "expander").output("y");
    EXPECT_MESSAGE(grown.bytes(), "expander");
    test::Model filled;
    filled.input("x", {"batch", "8"}).initializer(test::integers("shape", {1'000'000'000'000, 1'000'000'000'000}));
    filled.node("ConstantOfShape", {"shape"}, {"c"}).node("Add", {"x", "c"}, {"y"}, {}, "adder").output("y");
    EXPECT_MESSAGE(filled.bytes(), "adder");
    test::Model range;
    range.input("x", {"batch", "8"})
        .initializer(test::integer("zero", 0))
        .initializer(test::integer("end", 1'000'000'000'000'000))
        .initializer(test::integer("one", 1));
    range.node("Range", {"zero", "end", "one"}, {"r"}, {}, "ranger").node("Add", {"x", "r"}, {"y"}).output("y");
    EXPECT_MESSAGE(range.bytes(), "ranger");
  }

  void zero_sizes() {
    test::Model m;
    m.input("x", {"batch", "8"}).weight("w", {8, 0}).node("MatMul", {"x", "w"}, {"y"}, {}, "product").output("y");
    EXPECT_MESSAGE(m.bytes(), "product");
    test::Model sliced;
    sliced.input("x", {"batch", "8"})
        .initializer(test::integers("s", {4}))
        .initializer(test::integers("e", {4}))
        .initializer(test::integers("a", {1}));
    sliced.node("Slice", {"x", "s", "e", "a"}, {"y"}, {}, "nothing").output("y");
    EXPECT_MESSAGE(sliced.bytes(), "nothing");
  }

  // No element in all, whatever the other sizes are: what is known of them is neither added up nor walked along.
  void no_elements_in_huge_sizes() {
    constexpr std::int64_t kHuge = std::int64_t{1} << 62;
    const auto begun = [] {
      test::Model m;
      m.input("x", {"batch", "8"}).initializer(test::integers("none", {0, kHuge}));
      m.node("ConstantOfShape", {"none"}, {"c"});
      return m;
    };
    test::Model joined = begun();
    joined.node("Concat", {"c", "c"}, {"d"}, {test::attribute("axis", std::int64_t{1})}, "joined");
    joined.node("Add", {"x", "d"}, {"y"}).output("y");
    EXPECT_MESSAGE(joined.bytes(), "'");
    test::Model cut = begun();
    cut.initializer(test::integers("first", {0})).node("Slice", {"c", "first", "first", "first"}, {"d"}, {}, "cut");
    cut.node("Add", {"x", "d"}, {"y"}).output("y");
    EXPECT_MESSAGE(cut.bytes(), "'");
  }

  // Its amount is no number of 64 bits, so that no bound on amounts holds it off.
  void the_least_number() {
    using Sizes = std::vector<std::int64_t>;
    constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
    const auto layer = [](const char* kind, const std::vector<Message>& attributes) {
      test::Model m;
      m.input("x", {"batch", "4", "16"}).weight("w", {4, 4, 1});
      const bool weighs = std::string_view(kind).starts_with("Conv");
      m.node(kind, weighs ? std::vector<std::string>{"x", "w"} : std::vector<std::string>{"x"}, {"y"}, attributes, "layer");
      return m.output("y").bytes();
    };
    for (const Sizes& pads : {Sizes{kLeast, -1}, Sizes{-1, kLeast}}) {
      EXPECT_MESSAGE(layer("Conv", {test::attribute("pads", pads)}), "layer", "a padding is out of range");
      EXPECT_MESSAGE(layer("MaxPool", {test::attribute("kernel_shape", Sizes{2}), test::attribute("pads", pads)}), "layer",
                     "a padding is out of range");
    }
    EXPECT_MESSAGE(layer("Pad", {test::attribute("paddings", Sizes{0, 0, kLeast, 0, 0, -1})}), "layer",
                   "a padding is out of range");
    EXPECT_MESSAGE(layer("ConvTranspose", {test::attribute("output_padding", Sizes{kLeast})}), "layer",
                   "output_padding is out of range");
    EXPECT_MESSAGE(layer("ConvTranspose", {test::attribute("output_shape", Sizes{kLeast})}), "layer",
                   "output_shape is out of range");
  }

  void products_beyond_64_bits() {
    const auto layer = [](const char* kind, const char* size, const std::vector<Message>& attributes) {
      test::Model m;
      m.input("x", {"batch", "1", size}).weight("w", {1, 1, 1});
      const bool weighs = std::string_view(kind).starts_with("Conv");
      m.node(kind, weighs ? std::vector<std::string>{"x", "w"} : std::vector<std::string>{"x"}, {"y"}, attributes, "layer");
      return m.output("y").bytes();
    };
    using Sizes = std::vector<std::int64_t>;
    EXPECT_MESSAGE(layer("ConvTranspose", "549755813888", {test::attribute("strides", Sizes{1 << 29})}), "layer", "too large");
    // Windows side by side are told by sizes that are multiples.
    QCOMPARE(outcome(layer("MaxPool", "70368744177664", {test::attribute("kernel_shape", Sizes{1 << 29})})), std::string());
  }

  void results_that_have_no_name() {
    test::Model product;
    product.input("x", {"batch", "8"}).weight("w", {8, 4}).weight("bias", {1, 4});
    product.node("Gemm", {"x", "w", "bias"}, {"", "more"}, {}, "unnamed").node("Relu", {"more"}, {"y"}).output("y");
    EXPECT_MESSAGE(product.bytes(), "reads 'more'");
    test::Model cut;
    cut.input("x", {"batch", "8"}).initializer(test::integers("none", {0, 5000}));
    cut.initializer(test::integers("one", {1})).initializer(test::integers("two", {2}));
    cut.node("ConstantOfShape", {"none"}, {"c"}).node("Slice", {"c", "one", "two", "one"}, {"", "more"}, {}, "cut");
    cut.node("Add", {"x", "more"}, {"y"}).output("y");
    EXPECT_MESSAGE(cut.bytes(), "reads 'more'");
  }

  void scalars_where_dimensions_are_read() {
    test::Model attention;
    attention.input("x", {"batch", "4", "16"}).initializer(test::number("s", 1)).weight("bias", {48});
    attention.node("MultiHeadAttention", {"x", "s", "s", "bias"}, {"y"}, {test::attribute("num_heads", std::int64_t{2})}, "layer",
                   "com.microsoft");
    attention.output("y");
    EXPECT_MESSAGE(attention.bytes(), "layer", "heads do not divide");
    test::Model embedding;
    embedding.input("x", {"batch", "8"}).weight("words", {10, 8}).weight("places", {10, 8}).initializer(test::integer("id", 3));
    embedding.node("EmbedLayerNormalization", {"id", "", "words", "places"}, {"row", "mask"}, {}, "layer", "com.microsoft");
    embedding.node("Add", {"x", "row"}, {"y"}).output("y");
    QCOMPARE(outcome(embedding.bytes()), std::string());
  }

  void sums_that_come_round_again() {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    using Sizes = std::vector<std::int64_t>;
    const auto runtime = [](const char* kind, const std::vector<std::string>& inputs, const std::vector<Message>& attributes) {
      test::Model m;
      m.input("x", {"batch", "4", "16"}).weight("w", {16, 16});
      return m.node(kind, inputs, {"y"}, attributes, "layer", "com.microsoft").output("y").bytes();
    };
    EXPECT_MESSAGE(runtime("GroupQueryAttention", {"x"},
                           {test::attribute("num_heads", std::int64_t{2}), test::attribute("kv_num_heads", kMost)}),
                   "layer", "do not fit its heads");
    EXPECT_MESSAGE(runtime("Attention", {"x", "w"},
                           {test::attribute("num_heads", std::int64_t{2}),
                            test::attribute("qkv_hidden_sizes", Sizes{kMost, kMost, 18})}),
                   "layer", "three projections");
    test::Model gathered;
    gathered.input("x", {"batch", "8"}).initializer(test::integers("at", {0}));
    gathered.node("GatherND", {"x", "at"}, {"y"}, {test::attribute("batch_dims", kMost)}, "layer").output("y");
    EXPECT_MESSAGE(gathered.bytes(), "layer", "do not fit its data");
    // Heads times channels, of a result that is refused before.
    test::Model merged;
    merged.input("q", {"batch", "1099511627776", "1", "1"}).weight("k", {4, 1, 1, 1}).weight("v", {4, 1, 1, 1099511627776});
    merged.node("MultiHeadAttention", {"q", "k", "v"}, {"y"}, {test::attribute("num_heads", std::int64_t{1})}, "layer",
                "com.microsoft");
    merged.output("y");
    EXPECT_MESSAGE(merged.bytes(), "layer");
    test::Model biased;
    biased.input("x", {"batch", "8"}).weight("w", {8, 4}).initializer(test::integers("wide", {1LL << 48, 1LL << 48}));
    biased.node("ConstantOfShape", {"wide"}, {"c"}).node("Gemm", {"x", "w", "c"}, {"y"}, {}, "layer").output("y");
    EXPECT_MESSAGE(biased.bytes(), "layer");
    test::Model padded;  // a constant of nothing in all
    padded.input("x", {"batch", "8"}).initializer(test::integers("sides", {0, 1LL << 40, 0, 1LL << 40}));
    padded.node("Constant", {}, {"c"}, {test::tensor_attribute("value", test::tensor("", {0, kMost}, test::kFloat))}, "layer");
    padded.node("Pad", {"c", "sides"}, {"d"}).node("Add", {"x", "d"}, {"y"}).output("y");
    EXPECT_MESSAGE(padded.bytes(), "layer", "impossible dimension");
  }

  void sizes_that_do_not_fit() {
    test::Model product;
    product.input("x", {"batch", "8"}).weight("w", {9, 4}).node("MatMul", {"x", "w"}, {"y"}, {}, "product").output("y");
    EXPECT_MESSAGE(product.bytes(), "product", "8", "9");
    test::Model kernel;
    kernel.input("x", {"batch", "3", "4", "4"})
        .weight("w", {8, 3, 7, 7})
        .node("Conv", {"x", "w"}, {"y"}, {}, "conv")
        .output("y");
    EXPECT_MESSAGE(kernel.bytes(), "conv", "kernel");
    test::Model stride;
    stride.input("x", {"batch", "3", "4", "4"})
        .weight("w", {8, 3, 1, 1})
        .node("Conv", {"x", "w"}, {"y"}, {test::attribute("strides", std::vector<std::int64_t>{0, 0})}, "conv")
        .output("y");
    EXPECT_MESSAGE(stride.bytes(), "conv", "stride");
    test::Model pads;
    pads.input("x", {"batch", "3", "4", "4"}).weight("w", {8, 3, 1, 1});
    pads.node("Conv", {"x", "w"}, {"y"},
              {test::attribute("pads", std::vector<std::int64_t>{INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX})}, "conv")
        .output("y");
    EXPECT_MESSAGE(pads.bytes(), "conv", "padding");
    test::Model reshape;
    reshape.input("x", {"batch", "8"})
        .initializer(test::integers("t", {-1, 7}))
        .node("Reshape", {"x", "t"}, {"y"}, {}, "reshaper")
        .output("y");
    EXPECT_MESSAGE(reshape.bytes(), "reshaper", "[4, 8]");
    // With allowzero a 0 is a size, of a tensor that holds nothing; without it, the size of before.
    for (const std::int64_t allowed : {0, 1}) {
      test::Model zero;
      zero.input("x", {"batch", "8"}).initializer(test::integers("t", {0, -1}));
      zero.node("Reshape", {"x", "t"}, {"y"}, {test::attribute("allowzero", allowed)}, "reshaper").output("y");
      if (allowed)
        EXPECT_MESSAGE(zero.bytes(), "reshaper", "[0, -1]");
      else
        QVERIFY(outcome(zero.bytes()).empty());
    }
    test::Model axis;
    axis.input("x", {"batch", "8"})
        .node("Softmax", {"x"}, {"y"}, {test::attribute("axis", std::int64_t{5})}, "soft")
        .output("y");
    EXPECT_MESSAGE(axis.bytes(), "soft", "axis 5");
  }

  void data_dependent_shapes() {
    test::Model m;
    m.input("x", {"batch", "8"})
        .input("t", {"2"}, test::kInt64)
        .node("Reshape", {"x", "t"}, {"y"}, {}, "reshaper")
        .output("y");
    EXPECT_MESSAGE(m.bytes(), "reshaper", "depends on data");
  }

  void branches_without_graphs() {
    test::Model branch;
    branch.input("x", {"batch", "8"}).input("c", {}, test::kBool).node("If", {"c"}, {"y"}, {}, "branch").output("y");
    EXPECT_MESSAGE(branch.bytes(), "branch", "lacks its graph");
  }

  void deep_nesting() {
    Message graph;
    for (int depth = 0; depth < 2000; ++depth)
      graph =
          Message().message(1, Message().text(4, "If").message(5, Message().text(1, "then_branch").message(6, graph)));
    EXPECT_MESSAGE(Message().message(7, graph).bytes(), "nested");
  }

  void functions_that_call_themselves() {
    auto m = tiny();
    const auto body = test::Model::make_node("F", {"a"}, {"b"}, {}, {}, "own");
    m.function(Message().text(1, "F").text(4, "a").text(5, "b").message(7, body).text(10, "own"));
    m.node("F", {"x"}, {"z"}, {}, "caller", "own");
    EXPECT_MESSAGE(m.bytes(), "16 deep");
    auto bomb = tiny();  // 12 functions of ten calls each: 10^12 nodes if expanded
    for (int level = 0; level < 12; ++level) {
      Message f;
      f.text(1, numbered("F", level)).text(4, "a").text(5, "b9").text(10, "own");
      for (int k = 0; k < 10; ++k) {
        const auto kind = level == 0 ? std::string("Relu") : numbered("F", level - 1);
        f.message(7, test::Model::make_node(kind, {k == 0 ? "a" : numbered("b", k - 1)}, {numbered("b", k)}, {}, {},
                                            level == 0 ? "" : "own"));
      }
      bomb.function(f);
    }
    bomb.node("F11", {"x"}, {"z"}, {}, "caller", "own");
    EXPECT_MESSAGE(bomb.bytes(), "million");
  }

  void many_empty_messages() {
    Message graph;
    std::string nodes;
    for (int i = 0; i < 10'000'000; ++i) nodes += std::string("\x0a\x00", 2);
    EXPECT_MESSAGE(Message().message(7, graph.raw(nodes)).bytes(), "128 MB");
    QVERIFY2(peak_kilobytes() < 500 * 1024 * test::kSanitizerFactor, std::to_string(peak_kilobytes()).c_str());
  }

  void many_uses_of_one_name() {
    test::Model m;  // quadratic behaviour would show
    m.input("x", {"batch", "8"});
    std::string last = "x";
    for (int i = 0; i < 20000; ++i) {
      const auto next = numbered("v", i);
      m.node("Add", {last, "x"}, {next}, {}, "same name");
      last = next;
    }
    m.output(last);
    const auto begin = std::clock();
    QCOMPARE(outcome(m.bytes()), std::string());
    QVERIFY(std::clock() - begin < 5 * CLOCKS_PER_SEC);
  }

  void names_become_unique_and_valid() {
    test::Model m;
    m.input("x", {"batch", "8"});
    m.node("Relu", {"x"}, {"a"}, {}, "same")
        .node("Sigmoid", {"a"}, {"b"}, {}, "same")
        .node("Tanh", {"b"}, {"y"}, {}, "bad \xff\xc0\x80 name")
        .output("y");
    const auto bytes = m.bytes();
    const auto source = open_onnx_bytes(test::as_bytes(bytes), "names.onnx");
    QVERIFY(source.has_value());
    const auto model = (*source)->bind({2, 0});
    QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
    std::set<std::string> names;
    for (const auto& op : (*model)->operators) QVERIFY(names.insert(op.name).second);
    QVERIFY(names.count("same") && names.count("same_1"));
    QVERIFY(names.count("bad ??? name"));
  }

  void files_that_cannot_be_read() {
    QVERIFY(!open_onnx("/nonexistent/model.onnx").has_value());
    QVERIFY(open_onnx("/nonexistent/model.onnx").error().message().find("/nonexistent/model.onnx") !=
            std::string::npos);
    QVERIFY(!open_onnx("/dev/null").has_value());
    QTemporaryDir folder;
    QVERIFY(!open_onnx(folder.path().toStdString()).has_value());
    const auto empty = folder.filePath("empty.onnx").toStdString();
    std::ofstream(empty).close();
    QVERIFY(open_onnx(empty).error().message().find("empty") != std::string::npos);
  }

  void bad_bindings() {
    const auto bytes = tiny().bytes();
    const auto source = open_onnx_bytes(test::as_bytes(bytes), "bad.onnx");
    QVERIFY(!(*source)->bind({-1, 0}).has_value());
    QVERIFY(!(*source)->bind({INT64_MAX, 0}).has_value());
    QVERIFY((*source)->bind({1 << 30, 0}).has_value());
  }

  void real_files_never_crash() {
    REQUIRE_DATA(folder);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "onnx")) {
      if (entry.path().extension() != ".onnx") continue;
      const auto source = open_onnx(entry.path().string());
      QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
      const auto model = (*source)->bind({2, 0});
      if (!model) QVERIFY(model.error().where.find("node '") != std::string::npos);
    }
  }
};

QTEST_APPLESS_MAIN(OnnxMalformedTest)
#include "onnx_malformed_test.moc"
