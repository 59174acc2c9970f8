// SPDX-License-Identifier: Apache-2.0
// Expected, ids, quantities, progress: the small value types everything else stands on.
#include <QtTest>
#include <memory>
#include <type_traits>
#include <unordered_set>

#include "core/base/expected.h"
#include "core/base/ids.h"
#include "core/base/progress.h"
#include "core/base/quantities.h"

using namespace turnpoint;

// Mixing kinds must not compile.
static_assert(!std::is_convertible_v<int, OperatorId>);
static_assert(!std::is_convertible_v<OperatorId, TensorId>);
static_assert(!std::is_convertible_v<std::int64_t, Bytes>);
static_assert(!std::is_convertible_v<Bytes, Seconds>);
template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Seconds>);
static_assert(!Addable<Bytes, std::int64_t>);
template <class Vector, class Index>
concept IndexedBy = requires(Vector v, Index i) {
  v[i];
};
static_assert(IndexedBy<IdVector<OperatorId, int>, OperatorId>);
static_assert(!IndexedBy<IdVector<OperatorId, int>, TensorId>);
static_assert(!IndexedBy<IdVector<OperatorId, int>, int>);
// Ids and quantities cost nothing.
static_assert(sizeof(OperatorId) == sizeof(std::uint32_t) && std::is_trivially_copyable_v<OperatorId>);
static_assert(sizeof(Bytes) == sizeof(std::int64_t) && std::is_trivially_copyable_v<Bytes>);

namespace {

Expected<int> halve(int value) {
  if (value % 2 != 0) return bad_input("is odd", "number " + std::to_string(value));
  return value / 2;
}

Expected<void> refuse_negative(int value) {
  if (value < 0) return usage_error("must not be negative");
  return {};
}

}  // namespace

class ValuesTest : public QObject {
  Q_OBJECT

 private slots:
  void expected_holds_a_value_or_an_error() {
    const auto good = halve(8);
    QVERIFY(good.has_value() && good);
    QCOMPARE(*good, 4);
    QCOMPARE(good.value(), 4);
    const auto bad = halve(7);
    QVERIFY(!bad.has_value() && !bad);
    QVERIFY(bad.error().code == ErrorCode::bad_input);
    QCOMPARE(QString::fromStdString(bad.error().message()), QString("number 7: is odd"));
  }

  void expected_moves_what_cannot_be_copied() {
    Expected<std::unique_ptr<int>> owned(std::make_unique<int>(5));
    QCOMPARE(**owned, 5);
    std::unique_ptr<int> taken = *std::move(owned);
    QCOMPARE(*taken, 5);
    Expected<std::string> text(std::string("abc"));
    QCOMPARE(text->size(), std::size_t(3));
    text->push_back('d');
    QCOMPARE(QString::fromStdString(*text), QString("abcd"));
  }

  void expected_of_nothing() {
    QVERIFY(refuse_negative(1));
    const auto refused = refuse_negative(-1);
    QVERIFY(!refused);
    QVERIFY(refused.error().code == ErrorCode::usage);
  }

  void an_expected_string_tells_text_from_error() {
    const Expected<std::string> value(std::string("fine"));
    const Expected<std::string> error(bad_input("fine"));
    QVERIFY(value.has_value());
    QVERIFY(!error.has_value());
  }

  void messages() {
    QCOMPARE(QString::fromStdString(Error{ErrorCode::bad_input, "what", "", ""}.message()), QString("what"));
    QCOMPARE(QString::fromStdString(Error{ErrorCode::bad_input, "what", "a.json: line 3", ""}.message()),
             QString("a.json: line 3: what"));
    QCOMPARE(QString::fromStdString(Error{ErrorCode::bad_input, "what", "a.json", "do this"}.message()),
             QString("a.json: what (do this)"));
    // Names from files have any length; both ends of each are kept.
    const std::string name = "begin" + std::string(5000, 'x') + "end";
    for (const std::string& what : {"node '" + name + "' has no shape", "node " + name + " has no shape"}) {
      const std::string said = bad_input(what, "a.json").message();
      QVERIFY2(said.size() < 250, said.c_str());
      QVERIFY(said.starts_with("a.json: node ") && said.ends_with(" has no shape"));
      QVERIFY(said.find("begin") != std::string::npos && said.find("xend") != std::string::npos);
    }
    QVERIFY(bad_input("'" + std::string(3000, 'a') + " " + std::string(3000, 'b') + "' is odd").message().size() < 250);
    QVERIFY(cancelled_error().code == ErrorCode::cancelled);
  }

  void every_error_code_has_its_own_name() {
    std::unordered_set<std::string> names;
    for (const auto code :
         {ErrorCode::usage, ErrorCode::bad_input, ErrorCode::infeasible, ErrorCode::device, ErrorCode::cancelled})
      names.insert(to_string(code));
    QCOMPARE(names.size(), std::size_t(5));
    QVERIFY(!names.contains("unknown"));
  }

  void ids() {
    QVERIFY(!OperatorId().valid());
    QVERIFY(OperatorId(0).valid());
    QVERIFY(OperatorId(1) < OperatorId(2));
    QVERIFY(OperatorId(3) == OperatorId(3));
    IdVector<TensorId, std::string> names;
    QVERIFY(names.next_id() == TensorId(0));
    const TensorId first = names.next_id();
    names.push_back("first");
    const TensorId second = names.next_id();
    names.push_back("second");
    QCOMPARE(QString::fromStdString(names[first]), QString("first"));
    names[second] = "changed";
    QCOMPARE(QString::fromStdString(std::as_const(names)[second]), QString("changed"));
    std::unordered_set<TensorId> seen = {first, second, first};
    QCOMPARE(seen.size(), std::size_t(2));
  }

  void quantities() {
    Bytes memory(1000);
    memory += Bytes(24);
    memory -= Bytes(4);
    QCOMPARE(memory.value, std::int64_t(1020));
    QCOMPARE((memory + Bytes(4)).value, std::int64_t(1024));
    QCOMPARE((memory - Bytes(20)).value, std::int64_t(1000));
    QCOMPARE((memory * 2).value, std::int64_t(2040));
    QCOMPARE((2 * memory).value, std::int64_t(2040));
    QCOMPARE((memory / 3).value, std::int64_t(340));
    QCOMPARE(Bytes(1) / Bytes(4), 0.25);  // a ratio, not an integer division
    QVERIFY(Seconds(1) < Seconds(2));
    QVERIFY(Bytes() == Bytes(0));
  }

  void contexts_report_and_stop() {
    std::stop_source source;
    std::vector<Progress> seen;
    RunContext context{source.get_token(), [&](const Progress& progress) { seen.push_back(progress); }, 2};
    QVERIFY(!context.cancelled());
    context.report("phase", 0.5);
    context.report("unknown length");
    source.request_stop();
    QVERIFY(context.cancelled());
    QCOMPARE(seen.size(), std::size_t(2));
    QCOMPARE(seen[0].fraction, 0.5);
    QVERIFY(seen[1].fraction < 0);
    const RunContext silent;
    silent.report("nobody listens");
    QVERIFY(!silent.cancelled());
  }
};

QTEST_APPLESS_MAIN(ValuesTest)
#include "values_test.moc"
