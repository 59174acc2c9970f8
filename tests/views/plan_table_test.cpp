// SPDX-License-Identifier: Apache-2.0
// The plan table through its model's contract and real events. With TURNPOINT_SCREENSHOTS=<folder> it writes pictures.
#include "views/plan_table/plan_table_view.h"

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QClipboard>
#include <QDir>
#include <QElapsedTimer>
#include <QHeaderView>
#include <QMouseEvent>
#include <QPainter>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <functional>
#include <numeric>

#include "views/common/theme_colors.h"
#include "views/graph_fixture.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

/// Row names of one level.
QStringList names(const QAbstractItemModel& model, const QModelIndex& parent = {}) {
  QStringList list;
  for (int r = 0; r < model.rowCount(parent); ++r) list << model.index(r, 0, parent).data().toString();
  return list;
}

QModelIndex find(const QAbstractItemModel& model, const QString& name, const QModelIndex& parent = {}) {
  for (int r = 0; r < model.rowCount(parent); ++r) {
    const QModelIndex index = model.index(r, 0, parent);
    if (index.data().toString() == name) return index;
    if (const QModelIndex inner = find(model, name, index); inner.isValid()) return inner;
  }
  return {};
}

OperatorId op_named(const Model& model, const std::string& name) {
  for (std::uint32_t i = 0; i < model.operators.size(); ++i)
    if (model.operators[OperatorId(i)].name == name) return OperatorId(i);
  return {};
}

/// The fixture's plan with figures that order operators in another way in each column. Equal layers stay equal.
std::shared_ptr<Plan> uneven_plan(const Model& model) {
  const auto made = fixture::plan(model, 2);
  made->cost = {};
  for (PlanOperator& op : made->operators) {
    const std::string& name = model.operators[op.op].name;
    unsigned mixed = 7;
    for (const char c : name.substr(name.rfind('/') + 1)) mixed = mixed * 31 + static_cast<unsigned char>(c);
    op.cost.compute = {1e-4 * (1 + mixed % 17), 2e-4 * (1 + mixed % 17)};
    op.cost.network = {1e-4 * (1 + mixed / 17 % 23)};
    op.cost.memory = {};
    op.cost.memory[0] = std::int64_t(1 + mixed / 400 % 19) << 20;
    made->cost += op.cost;
  }
  for (const PlanReshard& reshard : made->reshards) made->cost += reshard.cost;
  return made;
}

struct Shown {
  PlanTableView view;
  SelectionModel selection;
  ModelPtr model;
  explicit Shown(ModelPtr m, int variant = 2) : model(std::move(m)) {
    view.set_selection(&selection);
    view.resize(1040, 360);
    view.set_model(model);
    if (variant >= 0) view.set_plan(fixture::plan(*model, variant), fixture::scenario(model));
    view.show();
    (void)QTest::qWaitForWindowExposed(&view);
  }
  QTreeView& tree() { return *view.tree(); }
  QAbstractItemModel& shown() { return *view.tree()->model(); }
  QPoint point(const QModelIndex& index) { return tree().visualRect(index).center(); }
};

/// QTest::mouseMove moves the cursor at times and sends an event at others; this always sends one.
void point_at(QWidget* widget, QPoint position) {
  QMouseEvent move(QEvent::MouseMove, QPointF(position), QPointF(widget->mapToGlobal(position)), Qt::NoButton,
                   Qt::NoButton, {});
  QApplication::sendEvent(widget, &move);
}

void shoot(QWidget& widget, const QString& name) {
  const QString folder = qEnvironmentVariable("TURNPOINT_SCREENSHOTS");
  if (!folder.isEmpty()) widget.grab().save(QDir(folder).filePath(name + ".png"));
}

}  // namespace

class PlanTableTest : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { QApplication::setPalette(make_palette(false)); }

  void model_keeps_the_contract() {
    PlanTableModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    const auto colors = std::make_shared<ConfigurationColors>();
    const auto show = [&](const ModelPtr& m, int variant) {
      const auto hierarchy = m ? std::make_shared<const Hierarchy>(build_hierarchy(*m)) : nullptr;
      model.set_data(m, hierarchy, variant < 0 || !m ? nullptr : PlanFigures::make(m, fixture::plan(*m, variant)),
                     colors);
    };
    const auto transformer = fixture::transformer(24), convolutional = fixture::convolutional(),
               chain = fixture::chain(300);
    show(transformer, -1);
    show(transformer, 0);
    show(transformer, 2);
    show(transformer, 2);
    show(convolutional, 0);
    show(chain, 0);
    show(nullptr, -1);
    show(std::make_shared<Model>(), -1);
    QCOMPARE(model.rowCount(), 0);
  }

  void in_a_narrow_window_kinds_and_figures_stay_whole_and_tips_have_the_rest() {
    Shown s(fixture::transformer(24));
    s.view.resize(620, 360);
    QTest::qWait(20);
    s.tree().expandAll();
    using M = PlanTableModel;
    const QFontMetrics metrics(s.tree().font());
    const std::function<void(const QModelIndex&)> check = [&](const QModelIndex& parent) {
      for (int r = 0; r < s.shown().rowCount(parent); ++r) {
        for (const int c : {M::kind, M::memory, M::compute, M::network, M::reshard}) {
          const QString text = s.shown().index(r, c, parent).data().toString();
          QVERIFY2(s.tree().columnWidth(c) >= metrics.horizontalAdvance(text) + 6, qPrintable(text));
        }
        const QModelIndex name = s.shown().index(r, M::name, parent);
        QVERIFY(name.data(Qt::ToolTipRole).toString().contains(name.data().toString().section(QChar(0xd7), 0, 0)));
        check(name);
      }
    };
    check({});
    QVERIFY(s.tree().columnWidth(M::memory) >= metrics.horizontalAdvance("<0.01") + 6);
  }

  void equal_layers_are_one_row_and_sums_agree() {
    Shown s(fixture::transformer(24));
    QCOMPARE(names(s.shown()), QStringList({"tokens", "embed", QString("layer \u00d724"), "lm_head", "loss"}));
    const QModelIndex layer = s.shown().index(2, 0);
    QCOMPARE(names(s.shown(), layer),
             QStringList({"ln1", QString("attention \u00d724"), "add1", "ln2", QString("mlp \u00d724"), "add2"}));
    QVERIFY(s.view.summary() == "316 operators, 24 equal layers in one row");
    // Every operator has exactly one row, and shares add up to the whole at every level.
    const auto& rows = s.view.source_model()->rows();
    std::vector<int> seen(s.model->operators.size(), 0);
    for (const PlanRow& row : rows.rows) {
      double inner = 0;
      for (const int child : row.children) inner += rows.rows[std::size_t(child)].share;
      if (!row.children.empty()) QVERIFY(qAbs(inner - row.share) < 1e-9);
      if (row.op.valid())
        for (const OperatorId op : row.operators) ++seen[op.index];
    }
    QVERIFY(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
    double top = 0;
    for (const int row : rows.top) top += rows.rows[std::size_t(row)].share;
    QVERIFY(qAbs(top - 1) < 1e-9);
    // Figures are of all copies, as shares are: the column adds up to the plan, at every level.
    const auto plan = fixture::plan(*s.model, 2);
    const auto time_of = [](const PlanRow& r) { return r.compute_s + r.network_s + r.reshard_s; };
    double time = 0;
    for (const int row : rows.top) time += time_of(rows.rows[std::size_t(row)]);
    QVERIFY(qAbs(time - plan->cost.time_s()) < 1e-9);
    for (const PlanRow& row : rows.rows) {
      double inside = 0;
      std::int64_t bytes = 0;
      for (const int child : row.children)
        inside += time_of(rows.rows[std::size_t(child)]), bytes += rows.rows[std::size_t(child)].memory_bytes;
      if (!row.children.empty()) QVERIFY(qAbs(inside - time_of(row)) < 1e-9 && bytes == row.memory_bytes);
      QVERIFY(qAbs(time_of(row) - row.share * plan->cost.time_s()) < 1e-9);
    }
    QVERIFY2(layer.data(Qt::ToolTipRole).toString().contains("of all 24 together"),
             qPrintable(layer.data(Qt::ToolTipRole).toString()));
  }

  void layers_that_differ_in_the_plan_are_apart() {
    Shown s(fixture::transformer(24), 0);  // every second layer splits its first normalisation another way
    QStringList top = names(s.shown());
    top = top.mid(2, top.size() - 4);
    QVERIFY2(top.size() >= 2, qPrintable(top.join(", ")));
    int layers = 0;
    for (int r = 2; r < s.shown().rowCount() - 2; ++r)
      layers +=
          s.view.source_model()->rows().rows[std::size_t(s.view.source_model()->rows().top[std::size_t(r)])].copies;
    QCOMPARE(layers, 24);
    QVERIFY2(top.join(' ').contains("layer1 \u2026 layer23 \u00d712"), qPrintable(top.join(", ")));
  }

  void cells_say_what_the_plan_says() {
    Shown s(fixture::transformer(24));
    const QModelIndex fc2 = find(s.shown(), "fc2");
    QVERIFY(fc2.isValid());
    const auto cell = [&](int column) { return fc2.siblingAtColumn(column).data().toString(); };
    QCOMPARE(cell(PlanTableModel::kind), QString("matmul"));
    QCOMPARE(cell(PlanTableModel::configuration), QString("batch yx \u00b7 in-channel z"));
    QVERIFY2(cell(PlanTableModel::layout).contains("partial z"), qPrintable(cell(PlanTableModel::layout)));
    QCOMPARE(cell(PlanTableModel::network), QString("12.2"));  // of all 24
    QVERIFY(
        fc2.siblingAtColumn(PlanTableModel::configuration).data(PlanTableModel::ColorRole).value<QColor>().isValid());
    QVERIFY(cell(PlanTableModel::share).endsWith('%'));
  }

  void filter_keeps_found_rows_and_their_parents() {
    Shown s(fixture::transformer(24));
    QTest::keyClicks(s.view.filter_field(), "fc2");
    QCOMPARE(s.shown().rowCount(), 1);
    QVERIFY(find(s.shown(), "fc2").isValid());
    QVERIFY(!find(s.shown(), "fc1").isValid());
    QVERIFY2(s.view.summary().startsWith("24 of 316"), qPrintable(s.view.summary()));
    s.view.filter_field()->clear();
    QTest::keyClicks(s.view.filter_field(), "MATMUL head");
    QVERIFY(find(s.shown(), "q").isValid() && !find(s.shown(), "fc1").isValid());
    s.view.filter_field()->setText("no such thing");
    QCOMPARE(s.shown().rowCount(), 0);
    QVERIFY(s.view.summary().startsWith("0 of"));
    s.view.filter_field()->clear();
    QCOMPARE(s.shown().rowCount(), 5);
  }

  // At every level, by figures that are not asked of the model: a column that is sorted by its neighbour would pass a
  // test of one column alone.
  void header_clicks_sort_by_value() {
    Shown s(fixture::transformer(24));
    s.view.set_plan(uneven_plan(*s.model), fixture::scenario(s.model));
    QHeaderView* header = s.tree().header();
    using M = PlanTableModel;
    const std::vector<int> columns{M::memory, M::compute, M::network, M::reshard, M::share};
    const auto value = [](const PlanRow& row, int column) {
      return column == M::memory    ? double(row.memory_bytes)
             : column == M::compute ? row.compute_s
             : column == M::network ? row.network_s
             : column == M::reshard ? row.reshard_s
                                    : row.share;
    };
    const auto& rows = s.view.source_model()->rows().rows;
    // The figures of each level as shown, which has to rise or to fall in all of them.
    const auto levels = [&](int column) {
      std::vector<std::vector<double>> list;
      const std::function<void(const QModelIndex&)> walk = [&](const QModelIndex& parent) {
        std::vector<double> level;
        for (int r = 0; r < s.shown().rowCount(parent); ++r) {
          const QModelIndex index = s.shown().index(r, 0, parent);
          const QString key = index.data(M::KeyRole).toString();
          const auto row = std::find_if(rows.begin(), rows.end(), [&](const PlanRow& each) { return each.key == key; });
          if (row != rows.end()) level.push_back(value(*row, column));
          if (s.shown().rowCount(index) > 0) walk(index);
        }
        list.push_back(std::move(level));
      };
      walk({});
      return list;
    };
    const auto all = [](const std::vector<std::vector<double>>& list, bool rising) {
      return std::all_of(list.begin(), list.end(), [&](const std::vector<double>& level) {
        return rising ? std::is_sorted(level.begin(), level.end()) : std::is_sorted(level.rbegin(), level.rend());
      });
    };
    for (const int column : columns) {
      const auto click = [&] {
        QTest::mouseClick(header->viewport(), Qt::LeftButton, {},
                          QPoint(header->sectionViewportPosition(column) + 10, 8));
      };
      const auto at = qPrintable(QString("column %1").arg(column));
      click();
      const bool rising = all(levels(column), true);
      QVERIFY2(rising || all(levels(column), false), at);
      click();
      QVERIFY2(all(levels(column), !rising), at);
      QVERIFY2(!all(levels(column), rising), at);
      // Rows in the order of this column are in that of no other one.
      for (const int other : columns)
        if (other != column)
          QVERIFY2(!all(levels(other), !rising), qPrintable(QString("%1 %2").arg(column).arg(other)));
      click();
      QCOMPARE(names(s.shown()).front(), QString("tokens"));  // the model's order again
    }
  }

  void little_shares_are_told_and_only_the_least_are_nearly_nothing() {
    Shown s(fixture::transformer(24));
    const auto& rows = s.view.source_model()->rows().rows;
    int little = 0;
    const std::function<void(const QModelIndex&)> check = [&](const QModelIndex& parent) {
      for (int r = 0; r < s.shown().rowCount(parent); ++r) {
        const QModelIndex index = s.shown().index(r, 0, parent);
        const QString key = index.data(PlanTableModel::KeyRole).toString();
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const PlanRow& each) { return each.key == key; });
        QVERIFY(row != rows.end());
        QString text = index.siblingAtColumn(PlanTableModel::share).data().toString();
        const double percent = row->share * 100;
        if (text == QString("<0.1%")) {
          QVERIFY2(percent > 0 && percent < 0.05, qPrintable(QString::number(percent)));
        } else {
          QVERIFY(text.endsWith('%'));
          text.chop(1);
          QVERIFY2(qAbs(text.toDouble() - percent) <= (percent < 9.95 ? 0.0501 : 0.501), qPrintable(text));
          little += percent > 0.05 && percent < 0.5;
        }
        check(index);
      }
    };
    check({});
    QVERIFY(little > 0);
  }

  void copy_gives_tabs() {
    Shown s(fixture::transformer(24));
    s.view.setFocus();
    s.tree().setFocus();
    QTest::mouseClick(s.tree().viewport(), Qt::LeftButton, {}, s.point(s.shown().index(2, 0)));
    QTest::keyClick(&s.tree(), Qt::Key_C, Qt::ControlModifier);
    const QStringList lines = QApplication::clipboard()->text().trimmed().split('\n');
    QCOMPARE(lines.size(), 2);
    QCOMPARE(lines[0].count('\t'), PlanTableModel::kColumns - 1);
    QCOMPARE(lines[1].count('\t'), PlanTableModel::kColumns - 1);
    QVERIFY(lines[1].startsWith(QString("layer \u00d724\tgroup\t")));
    s.tree().clearSelection();
    QCOMPARE(s.view.rows_as_text().trimmed().split('\n').size(), 6);
  }

  void selection_is_linked_both_ways() {
    Shown s(fixture::transformer(24));
    QSignalSpy changed(&s.selection, &SelectionModel::operators_changed);
    QTest::mouseClick(s.tree().viewport(), Qt::LeftButton, {}, s.point(s.shown().index(2, 0)));
    QCOMPARE(s.selection.operators().size(), std::size_t(24 * 13));
    QCOMPARE(changed.count(), 1);
    // From outside: its row is unfolded, marked, and nothing is sent back.
    const OperatorId fc2 = op_named(*s.model, "layer7/mlp/fc2");
    s.selection.pick_operators({fc2});
    QCOMPARE(changed.count(), 2);
    QCOMPARE(s.selection.operators(), std::set<OperatorId>{fc2});
    const auto rows = s.tree().selectionModel()->selectedRows();
    QCOMPARE(rows.size(), 1);
    QCOMPARE(rows.front().data().toString(), QString("fc2"));
    QVERIFY(s.tree().visualRect(rows.front()).isValid());
    // Hover goes out and comes in.
    point_at(s.tree().viewport(), s.point(rows.front()));
    QTRY_VERIFY(s.selection.hovered_operator().valid());
    s.selection.hover_operator(op_named(*s.model, "loss"));
    const QModelIndex loss = find(s.shown(), "loss");
    QVERIFY(loss.data(Qt::BackgroundRole).isValid());
    s.selection.hover_operator({});
    QVERIFY(!loss.data(Qt::BackgroundRole).isValid());
  }

  void another_plan_keeps_what_is_open() {
    Shown s(fixture::transformer(24));
    const QModelIndex layer = s.shown().index(2, 0);
    s.tree().expand(layer);
    QSignalSpy reset(s.view.source_model(), &QAbstractItemModel::modelReset);
    s.view.set_plan(fixture::plan(*s.model, 1), fixture::scenario(s.model));
    QCOMPARE(reset.count(), 0);  // the same rows: only figures changed
    QVERIFY(s.tree().isExpanded(s.shown().index(2, 0)));
    s.view.set_plan(fixture::plan(*s.model, 0), fixture::scenario(s.model));
    QCOMPARE(reset.count(), 1);
    QVERIFY(s.tree().isExpanded(s.shown().index(2, 0)));
    s.view.set_plan(nullptr, nullptr);
    QVERIFY(s.view.summary().contains("no plan picked"));
    QCOMPARE(s.shown().index(0, PlanTableModel::memory).data().toString(), QString());
  }

  void state_survives() {
    QJsonObject state;
    {
      Shown s(fixture::transformer(24));
      s.tree().expand(s.shown().index(2, 0));
      s.tree().sortByColumn(PlanTableModel::compute, Qt::DescendingOrder);
      state = s.view.save_state();
    }
    PlanTableView view;
    view.restore_state(state);
    const auto model = fixture::transformer(24);
    view.set_plan(fixture::plan(*model, 2), fixture::scenario(model));
    const QModelIndex layer = find(*view.tree()->model(), QString("layer \u00d724"));
    QCOMPARE(layer.row(), 0);  // sorted by compute
    QVERIFY(view.tree()->isExpanded(layer));
    view.restore_state(QJsonObject{{"expanded", 3}, {"header", "?"}});
  }

  void pictures_and_screenshots() {
    for (const bool dark : {false, true}) {
      QApplication::setPalette(make_palette(dark));
      const QString theme = dark ? "dark" : "light";
      Shown s(fixture::transformer(24));
      s.tree().expandAll();
      s.selection.pick_operators({op_named(*s.model, "layer7/mlp/fc2")});
      shoot(s.view, "table-" + theme);
      QImage image(900, 500, QImage::Format_RGB32);
      QPainter painter(&image);
      s.view.paint_to(painter, image.size());
      painter.end();
      int colored = 0;
      for (int x = 0; x < image.width(); ++x)
        for (int y = 0; y < image.height(); ++y)
          colored += image.pixelColor(x, y) == theme_colors(s.view.palette()).accent;
      QVERIFY(colored > 200);
      if (const QString folder = qEnvironmentVariable("TURNPOINT_SCREENSHOTS"); !folder.isEmpty())
        image.save(QDir(folder).filePath("table-picture-" + theme + ".png"));
      Shown c(fixture::convolutional());
      c.tree().expand(c.shown().index(3, 0));
      shoot(c.view, "table-cnn-" + theme);
      c.view.filter_field()->setText("Conv");
      shoot(c.view, "table-cnn-filter-" + theme);
      Shown n(fixture::convolutional(), -1);
      shoot(n.view, "table-no-plan-" + theme);
    }
    QApplication::setPalette(make_palette(false));
    PlanTableView empty;
    empty.resize(600, 200);
    empty.show();
    (void)QTest::qWaitForWindowExposed(&empty);
    shoot(empty, "table-empty");
    QVERIFY(empty.summary().startsWith("Open a model"));
  }

  void twenty_thousand_operators() {
    const auto model = fixture::transformer(1538);
    Shown s(model, 0);
    QElapsedTimer clock;
    clock.start();
    s.view.set_plan(fixture::plan(*model, 2), nullptr);
    qInfo("%zu operators: %lld ms for another plan (the fixture's making included)", model->operators.size(),
          clock.elapsed());
    clock.restart();
    s.view.filter_field()->setText("fc2");
    qInfo("filter %lld ms", clock.elapsed());
    QVERIFY(s.view.summary().startsWith("1538 of"));
  }
};

QTEST_MAIN(PlanTableTest)
#include "plan_table_test.moc"
