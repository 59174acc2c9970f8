// SPDX-License-Identifier: Apache-2.0
// Products whose rows are no multiple of 16 bytes: which they are, by how much they are slower, and where that is not
// asked. Rates and times are worked by hand.
#include "core/cost/row_alignment.h"

#include <QtTest>

#include "core/model/builder.h"
#include "cost/round_setting.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

constexpr std::int64_t kRows = 4096, kInner = 1024;

/// y = x W + b with so many columns, and their loss.
ModelPtr classifier(std::int64_t columns, std::int64_t inner = kInner) {
  ModelBuilder b("classifier", "test", kRows, 0);
  const auto x = b.input("x", {kRows, inner}, {DimName::batch, DimName::channel}, ElementType::f32);
  const auto w = b.parameter("w", {inner, inner}), v = b.parameter("v", {inner, columns}),
             c = b.parameter("c", {columns});
  const auto y = b.linear("logits", b.linear("stem", x, w), v, c);
  const auto labels = b.input("labels", {kRows}, {DimName::batch}, ElementType::i64);
  auto model = b.finish({b.cross_entropy("loss", y, labels)});
  return *model;
}

Rows rows(const ModelPtr& model, const char* name, std::int64_t split_columns = 1) {
  for (const Operator& op : model->operators) {
    if (op.name != name) continue;
    std::vector<std::int64_t> local;
    for (const auto& dim : op.dims) local.push_back(dim.size);
    if (split_columns > 1) local[1] /= split_columns;
    return rows_of(*model, op, local);
  }
  qFatal("no operator %s", name);
}

/// Odd rows at a tenth of the peak of 4 TFLOP/s, even ones at a quarter.
void slow_rows(Cluster& cluster) {
  cluster.device.flop_efficiency_odd = 0.1;
  cluster.device.flop_efficiency_even = 0.25;
}
void halves(Settings& settings) { settings.precision = Precision::bf16; }

double forward_s(const Setting& s, const char* name) { return s.costs->forward_s(s.find(name), {}); }

}  // namespace

class RowAlignmentTest : public QObject {
  Q_OBJECT

 private slots:
  void the_worst_row_of_all_operands_counts() {
    QVERIFY(rows(classifier(50264), "logits") == Rows::aligned);
    QVERIFY(rows(classifier(50260), "logits") == Rows::even);
    QVERIFY(rows(classifier(50258), "logits") == Rows::even);
    QVERIFY(rows(classifier(50257), "logits") == Rows::odd);
    QVERIFY(rows(classifier(64, 1001), "logits") == Rows::odd);
    QVERIFY(rows(classifier(50257), "stem") == Rows::aligned);
    QVERIFY(rows(classifier(50257), "loss") == Rows::aligned);  // no product
  }

  void a_part_of_a_row_is_a_shorter_row() {
    const auto model = classifier(48);  // of the stem, either loop beside the rows has 1024 steps
    QVERIFY(rows(model, "stem", 128) == Rows::aligned);
    QVERIFY(rows(model, "stem", 256) == Rows::even);
    QVERIFY(rows(model, "stem", 1024) == Rows::odd);
  }

  void rates() {
    const double flop = 2.0 * kRows * kInner * 1001 + kRows * 1001;
    const Setting odd(classifier(1001), 1, 1, halves, slow_rows), fast(classifier(1001), 1, 1, halves);
    QVERIFY2(close(forward_s(odd, "logits"), flop / 0.4e12 + 1e-6),
             qPrintable(QString::number(forward_s(odd, "logits"))));
    QVERIFY(close(forward_s(fast, "logits"), flop / 4e12 + 1e-6));
    QCOMPARE(forward_s(odd, "stem"), forward_s(fast, "stem"));
    const Setting even(classifier(1002), 1, 1, halves, slow_rows);
    QVERIFY(close(forward_s(even, "logits"), (2.0 * kRows * kInner * 1002 + kRows * 1002) / 1e12 + 1e-6));
    // Twice as fast a device is so with these rows, too.
    const Setting faster(
        classifier(1001), 1, 1,
        [](Settings& settings) {
          halves(settings);
          settings.factors.device_speed = 2;
        },
        slow_rows);
    QVERIFY(close(forward_s(faster, "logits"), flop / 0.8e12 + 1e-6));
  }

  void nobody_asks_in_fp32_or_under_the_papers_accounting() {
    const Setting whole(classifier(1001), 1, 1, {}, slow_rows), plain(classifier(1001), 1, 1);
    QCOMPARE(forward_s(whole, "logits"), forward_s(plain, "logits"));
    const auto of_paper = [](Settings& settings) {
      halves(settings);
      settings.accounting = Accounting::paper;
    };
    const Setting paper(classifier(1001), 1, 1, of_paper, slow_rows), same(classifier(1001), 1, 1, of_paper);
    QCOMPARE(forward_s(paper, "logits"), forward_s(same, "logits"));
    QVERIFY(unaligned_rows_note(whole.scenario).empty() && unaligned_rows_note(paper.scenario).empty());
  }

  void fits_of_such_rows_come_first() {
    const double flop = 2.0 * kRows * kInner * 1001 + kRows * 1001;
    const auto measured = [](bool of_odd_rows) {
      return [of_odd_rows](Cluster& cluster) {
        slow_rows(cluster);
        cluster.fits.push_back({"matmul", "forward", Precision::bf16, 2e-6, 1 / 3e12, 0, 8});
        if (of_odd_rows)
          cluster.fits.push_back({"matmul, odd rows", "forward", Precision::bf16, 3e-6, 1 / 0.5e12, 0, 8});
      };
    };
    const Setting both(classifier(1001), 1, 1, halves, measured(true)),
        one(classifier(1001), 1, 1, halves, measured(false));
    QVERIFY(close(forward_s(both, "logits"), 3e-6 + flop / 0.5e12));
    QVERIFY(close(forward_s(one, "logits"), 2e-6 + flop / 0.4e12));  // the device's rate, which is less than the fit's
    QVERIFY(close(forward_s(both, "stem"), 2e-6 + 2.0 * kRows * kInner * kInner / 3e12));
  }

  void a_note_names_the_product_and_what_padding_would_bring() {
    const Setting odd(classifier(50257), 1, 1, halves, slow_rows), padded(classifier(50264), 1, 1, halves, slow_rows),
        fast(classifier(50257), 1, 1, halves);
    QCOMPARE(
        QString::fromStdString(unaligned_rows_note(odd.scenario)),
        QString("'logits': rows of 50257 numbers are no multiple of 8: padded to 50264, its 16-bit products would be "
                "10.0 times as fast"));
    QVERIFY(unaligned_rows_note(padded.scenario).empty());
    QVERIFY(unaligned_rows_note(fast.scenario).empty());
    // Of two columns the stem's time hides what they lose.
    QVERIFY(unaligned_rows_note(Setting(classifier(2), 1, 1, halves, slow_rows).scenario).empty());
  }
};

QTEST_GUILESS_MAIN(RowAlignmentTest)
#include "row_alignment_test.moc"
