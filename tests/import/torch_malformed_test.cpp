// SPDX-License-Identifier: Apache-2.0
// Archives and programs that are cut, wrong or meant to harm: one message each, no crash, no memory for what is claimed.
#include <QTest>
#include <limits>

#include "core/import/torch/archive.h"
#include "tests/import/torch_archive.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

using P = TorchProgram;

TorchProgram product() {
  P p;
  p.parameter("w", "fc.weight", {"4", "8"}).data("x", {"2", "8"}).tensor("y", {"2", "4"});
  p.node("aten.linear.default", {{"input", P::of("x")}, {"weight", P::of("w")}}, {"y"});
  return p.result("y");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  return at == text.npos ? "not found" : text.replace(at, from.size(), to);
}

std::string archive(const std::string& json) { return TorchArchive().add("net/models/model.json", json).text(); }

}  // namespace

class TorchMalformedTest : public QObject {
  Q_OBJECT

 private slots:
  void members_are_found_whatever_way_they_are_stored() {
    const std::string json = product().json();
    for (const bool wide : {false, true})
      for (const bool deflated : {false, true}) {
        TorchArchive made(wide);
        made.add("net/byteorder", "little").add("net/models/model.json", json, deflated).add("net/data/weights/w", "");
        const auto source = opened_archive(made.text());
        QVERIFY2(source.has_value(), source ? "" : source.error().message().c_str());
        QCOMPARE((*(*source)->bind({2, 0}))->parameters, std::int64_t(32));
      }
    // Before PyTorch 2.9, and with words behind the archive.
    QVERIFY(opened_archive(TorchArchive().add("serialized_exported_program.json", json).text()).has_value());
    std::string commented = archive(json);
    commented[commented.size() - 2] = 5;
    QVERIFY(opened_archive(commented + "words").has_value());
  }

  void a_file_may_end_anywhere() {
    for (const bool wide : {false, true}) {
      const std::string whole = TorchArchive(wide).add("net/models/model.json", product().json(), true).text();
      for (std::size_t size = 0; size < whole.size(); ++size) {
        const std::string cut = whole.substr(0, size);
        QVERIFY(!is_torch_program(bytes_of(cut)));
        QVERIFY(!opened_archive(cut).has_value());
      }
    }
  }

  void every_byte_may_be_wrong() {
    const std::string whole = TorchArchive(true).add("net/models/model.json", product().json(), true).text();
    for (std::size_t at = 0; at < whole.size(); ++at)
      for (const int bit : {0, 3, 7}) {
        std::string broken = whole;
        broken[at] = static_cast<char>(broken[at] ^ (1 << bit));
        const auto source = opened_archive(broken);
        const auto model = source ? (*source)->bind({2, 0}) : Expected<ModelPtr>(source.error());
        // Names and times do not matter; whatever else is wrong is said of the file.
        if (model)
          QCOMPARE((*model)->operators.back().detail, std::string("MatMul"));
        else
          QVERIFY(model.error().message().find("net.pt2") != std::string::npos);
      }
  }

  void what_is_claimed_is_not_allocated() {
    const std::string json = product().json();
    const auto claimed = opened_archive(TorchArchive(true).add("net/models/model.json", json, true, std::int64_t(1) << 40).text());
    QVERIFY(!claimed && claimed.error().message().find("larger than 512 MiB") != std::string::npos);
    const auto less = opened_archive(TorchArchive().add("net/models/model.json", json, true, 10).text());
    QVERIFY(!less && less.error().message().find("damaged") != std::string::npos);
    // A megabyte that unpacks to a gigabyte ends at the limit that is given.
    const std::string bomb = TorchArchive().add("m", std::string(std::size_t(8) << 20, ' '), true, 100).text();
    const auto members = torch_program::list_members(bytes_of(bomb), "bomb.zip");
    QVERIFY(members && members->size() == 1 && members->front().packed.size() < 20000);
    QVERIFY(!torch_program::unpack(members->front(), 1 << 20, "bomb.zip").has_value());
  }

  void broken_programs_data() {
    QTest::addColumn<QString>("json");
    QTest::addColumn<QString>("words");
    const std::string good = product().json();
    const auto row = [](const char* name, const std::string& json, const char* words) {
      QTest::newRow(name) << QString::fromStdString(json) << QString(words);
    };
    row("no json", "{", "not valid JSON");
    row("deep", std::string(5000, '['), "nested deeper");
    row("no graph", "{}", "holds no graph with a signature");
    row("no result", replaced(good, "user_output", "other"), "computes no result");
    row("unknown tensor", replaced(good, R"({"name": "input", "arg": {"as_tensor": {"name": "x"}})",
                                   R"({"name": "input", "arg": {"as_tensor": {"name": "z"}})"),
        "node 'y' (aten.linear.default): reads 'z', which nothing makes");
    row("huge dimension", replaced(good, R"({"as_int": 8})", R"({"as_int": 4611686018427387904})"), "impossible dimension");
    row("negative dimension", replaced(good, R"({"as_int": 8})", R"({"as_int": -8})"), "impossible dimension");
    row("free weight", replaced(good, R"({"as_int": 8})", R"({"as_expr": {"expr_str": "s1"}})"),
        "the size of 'fc.weight' is not fixed");
    row("missing argument", replaced(good, R"("name": "weight")", R"("name": "other")"), "weight");
    row("number that is none", replaced(good, R"({"as_tensor": {"name": "w"}}, "kind")", R"({"as_int": "8"}, "kind")"),
        "a number that is none");
    row("sizes that do not fit", replaced(good, R"({"as_int": 8})", R"({"as_int": 9})"), "y");
    row("mask", replaced(good, "aten.linear.default", "aten.nonzero.default"), "aten.nonzero.default");
  }
  void broken_programs() {
    QFETCH(QString, json);
    QFETCH(QString, words);
    const auto source = opened_archive(archive(json.toStdString()));
    Expected<ModelPtr> model = source ? (*source)->bind({2, 0}) : Expected<ModelPtr>(source.error());
    QVERIFY(!model.has_value());
    const std::string said = model.error().message();
    QVERIFY2(said.find(words.toStdString()) != std::string::npos && said.find("net.pt2") != std::string::npos, said.c_str());
  }

  // Arguments of an inner graph, and the tensor that is changed in place, are named by what reads them.
  void a_tensor_may_lack_its_name() {
    P p;
    p.data("x", {"4", "8"}).tensor("outer", {"4", "8"}).tensor("y", {"4", "8"});
    const std::string inner = R"({"as_graph": {"name": "submod_1", "graph": {"inputs": [)" + P::of("x") +
                              R"(], "outputs": [)" + P::of("sin") + R"(], "nodes": [)" +
                              P::made_node("aten.sin.default", {{"self", P::of("x")}}, {"sin"}, "") +
                              R"(], "tensor_values": {}}}})";
    p.node("higher_order.wrap_with_set_grad_enabled", {{"", inner}, {"", P::of("x")}}, {"outer"});
    p.node("aten.add_.Tensor", {{"self", P::of("outer")}, {"other", P::of("x")}}, {"y"}).result("y");
    const std::string whole = p.json();
    QVERIFY(opened_archive(archive(whole)).has_value());
    int refused = 0;
    for (const std::string name : {"x", "outer", "sin", "y"})
      for (std::size_t at = 0; (at = whole.find(P::of(name), at)) != whole.npos; ++at)
        for (const char* wrong : {"null", "[]", "7"}) {
          std::string broken = whole;
          broken.replace(at, P::of(name).size(), std::string(R"({"as_tensor": )") + wrong + "}");
          const auto source = opened_archive(archive(broken));
          if (source) continue;  // of a result or a signature: what is left may still be a program
          refused += source.error().message().find("has a tensor without a name") != std::string::npos;
        }
    QCOMPARE(refused, 4 * 3);  // the inner graph's argument, what it reads, and both operands of the sum
  }

  void numbers_that_no_operator_takes_data() {
    QTest::addColumn<QString>("target");
    QTest::addColumn<QString>("arguments");
    QTest::addColumn<QString>("words");
    const auto row = [](const char* name, const char* target, const std::string& arguments, const char* words) {
      QTest::newRow(name) << QString(target) << QString::fromStdString(arguments) << QString(words);
    };
    // Of x [4, 8], a scalar s, and queries and keys [2, 4, 6, 8] and [2, 2, 6, 8].
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    const std::string x = "self=" + P::of("x") + ";", repeat = "aten.repeat_interleave.self_int";
    const auto repeated = [&](const char* name, const std::string& what, std::int64_t times, int dim, const char* words) {
      row(name, repeat.c_str(), what + "repeats=" + P::whole(times) + ";dim=" + P::whole(dim), words);
    };
    repeated("repeated beyond the dimensions", x, 2, 2, "dimension 2 of 2");
    repeated("repeated scalar", "self=" + P::of("s") + ";", 2, 0, "of a scalar");
    repeated("repeated too often", x, kMost, 1, "impossible number of times");
    repeated("repeated less than never", x, -2, 1, "impossible number of times");
    row("narrowed beyond any number", "aten.narrow.default",
        x + "dim=" + P::whole(1) + ";start=" + P::whole(kMost) + ";length=" + P::whole(kMost), "(aten.narrow.default)");
    row("range without its end", "aten.arange.default", R"(end={"as_floats": []})", "");
    row("range to beyond any number", "aten.arange.default", R"(end={"as_float": 1e300})", "");
    row("filled beyond any number", "aten.scalar_tensor.default", R"(s={"as_float": -1e300})", "");
    const std::string q = "query=" + P::of("q") + ";key=" + P::of("k") + ";attn_mask=" + P::of("bias") + ";value=";
    const char* attention = "aten.scaled_dot_product_attention.default";
    row("values without heads", attention, q + P::of("x"), "values do not fit the keys");
    row("values that nothing tells of", attention, q + P::of("untold"), "which nothing makes");
    row("values of other heads", attention, q + P::of("wide"), "values do not fit the keys");
  }
  void numbers_that_no_operator_takes() {
    QFETCH(QString, target);
    QFETCH(QString, arguments);
    QFETCH(QString, words);
    P p;
    p.data("x", {"4", "8"}).data("s", {}).data("q", {"2", "4", "6", "8"}).data("k", {"2", "2", "6", "8"});
    p.data("wide", {"2", "281474976710656", "6", "8"}).parameter("bias", "attn.bias", {"1", "4", "6", "6"});
    p.tensor("untold", {"4", "8"}).tensor("y", {"4", "8"}, 5).tensor("z", {"4", "8"});
    std::vector<std::pair<std::string, std::string>> given;
    for (const QString& one : arguments.split(u';', Qt::SkipEmptyParts))
      given.emplace_back(one.section(u'=', 0, 0).toStdString(), one.section(u'=', 1).toStdString());
    p.node(target.toStdString(), given, {"y"}).node("aten.mul.Tensor", {{"self", P::of("x")}, {"other", P::of("y")}}, {"z"});
    std::string json = p.result("z").json();
    const std::string untold = R"("untold": {)";
    json.replace(json.find(untold), untold.size(), R"("other": {)");
    const auto source = opened_archive(archive(json));
    const Expected<ModelPtr> model = source ? (*source)->bind({4, 0}) : Expected<ModelPtr>(source.error());
    // Ranges and numbers of any value may be said in a file: a model, or one message.
    const std::string said = model ? "" : model.error().message();
    QVERIFY2(said.find(words.toStdString()) != std::string::npos, said.c_str());
  }

  void two_programs_are_one_too_many() {
    const std::string json = product().json();
    const auto source = opened_archive(TorchArchive().add("n/models/a.json", json).add("n/models/b.json", json).text());
    QVERIFY(!source && source.error().message().find("holds 2 programs") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(TorchMalformedTest)
#include "torch_malformed_test.moc"
