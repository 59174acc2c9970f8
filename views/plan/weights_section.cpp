// SPDX-License-Identifier: Apache-2.0
#include "views/plan/weights_section.h"

#include <QEvent>
#include <QGridLayout>
#include <QHeaderView>
#include <QLabel>
#include <QStandardItemModel>
#include <QTreeView>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/plan/breakdown_bar.h"
#include "views/plan/time_parts.h"

namespace turnpoint::views {

namespace {

constexpr int kRowGap = 2;  // px between the two bars

QString shards_text(const WeightUpdate& one) {
  return one.sharded() ? QObject::tr("%1 of %2").arg(one.shards).arg(one.replicas) : QObject::tr("whole");
}

/// What tells it from the others: that it is a weight, the table's head says.
QString name_text(const WeightUpdate& one) {
  const QString name = to_qt(one.weight), ending = QStringLiteral(".weight");
  return name.endsWith(ending) && name != ending ? name.chopped(ending.size()) : name;
}

bool same_parts(const CostBreakdown& a, const CostBreakdown& b) {
  return a.compute == b.compute && a.network == b.network && a.memory == b.memory;
}

QString tool_tip(const WeightUpdate& one) {
  QString text = QObject::tr("%1 is %2.").arg(to_qt(one.weight), with_groups(to_qt(one.reason)));
  if (one.padding > 0) text += QObject::tr(" Padding adds %1 of it.").arg(gap_text(one.padding));
  if (one.sharded()) text += QObject::tr(" It is gathered in %1 bytes an element.").arg(one.gather_bytes);
  return text;
}

}  // namespace

WeightsSection::WeightsSection(QWidget* parent) : QWidget(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 8, 0, 0);
  column->setSpacing(4);
  head_ = new SectionHead(tr("Updates of weights"), this);
  column->addWidget(head_);
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(8);
  grid->setVerticalSpacing(kRowGap);
  grid->setColumnStretch(1, 1);
  step_ = add_bars(grid, tr("Time of a step"));
  updates_ = add_bars(grid, tr("Of that, updates of weights"));
  column->addLayout(grid);
  rows_ = new QStandardItemModel(0, 3, this);
  table_ = new QTreeView(this);
  table_->setObjectName(QStringLiteral("weights_view"));
  table_->setAccessibleName(tr("Updates of weights"));
  table_->setModel(rows_);
  table_->setRootIsDecorated(false);
  table_->setUniformRowHeights(true);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setTextElideMode(Qt::ElideMiddle);
  table_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  table_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  table_->viewport()->setAutoFillBackground(false);
  table_->header()->setStretchLastSection(false);
  table_->header()->setMinimumSectionSize(40);
  column->addWidget(table_);
  connect(head_, &SectionHead::clicked, this, [this] {
    all_ = !all_;
    show_weights();
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& current) {
    if (current.isValid()) emit weight_picked(to_qt(weights_[std::size_t(current.row())].weight));
  });
  hide();
}

WeightsSection::Bars WeightsSection::add_bars(QGridLayout* grid, const QString& caption) {
  Bars bars;
  bars.caption = new QLabel(caption, this);
  bars.caption->setFont(secondary_font(font()));
  grid->addWidget(bars.caption, grid->rowCount(), 0, 1, 3);
  bars.whole = add_row(grid, tr("Before sharding"), caption);
  bars.chosen = add_row(grid, tr("After sharding"), caption);
  bars.whole.name->setToolTip(tr("Every replica updates all of every weight itself"));
  bars.chosen.name->setToolTip(
      tr("Every weight is updated as the table below says: whole, or in shards among replicas"));
  return bars;
}

WeightsSection::Row WeightsSection::add_row(QGridLayout* grid, const QString& name, const QString& caption) {
  const int at = grid->rowCount();
  Row row{new QLabel(name, this), new QLabel(this), new BreakdownBar(this)};
  for (QLabel* label : {row.name, row.figure}) label->setFont(secondary_font(font()));
  row.bar->setFixedHeight(12);
  row.bar->setAccessibleName(tr("%1, %2").arg(caption, name));
  grid->addWidget(row.name, at, 0);
  grid->addWidget(row.bar, at, 1);
  grid->addWidget(row.figure, at, 2, Qt::AlignRight);
  return row;
}

void WeightsSection::set_weights(std::vector<WeightUpdate> weights, std::optional<CostBreakdown> whole_updates) {
  std::stable_sort(weights.begin(), weights.end(),
                   [](const WeightUpdate& a, const WeightUpdate& b) { return a.whole.total() > b.whole.total(); });
  whole_step_ = whole_updates;
  if (weights == weights_) return show_step();
  weights_ = std::move(weights);
  all_ = false;
  setVisible(!weights_.empty());
  if (!weights_.empty()) show_weights();
}

void WeightsSection::set_step(const CostBreakdown& cost, const std::optional<CostBreakdown>& whole_updates,
                              bool stages) {
  chosen_step_ = cost, whole_of_chosen_ = whole_updates;
  stages_ = stages;
  show_step();
}

void WeightsSection::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && !weights_.empty()) show_weights();
}

void WeightsSection::show_step() {
  const bool known = whole_step_ && whole_of_chosen_ && same_parts(*whole_step_, *whole_of_chosen_);
  const std::initializer_list<QWidget*> shown = {step_.caption,   step_.whole.name,  step_.whole.figure,
                                                 step_.whole.bar, step_.chosen.name, step_.chosen.figure,
                                                 step_.chosen.bar};
  for (QWidget* one : shown) one->setVisible(known);
  if (!known) return;
  const double most = std::max(whole_step_->time_s(), chosen_step_->time_s());
  const auto show = [&](const Row& row, const CostBreakdown& of) {
    row.bar->set_parts(bar_of(time_parts(of, stages_, theme_colors(palette()))), most);
    row.figure->setText(time_beside(of.time_s(), most));
  };
  show(step_.whole, *whole_step_);
  show(step_.chosen, *chosen_step_);
}

void WeightsSection::show_updates() {
  const ThemeColors& colors = theme_colors(palette());
  UpdateSeconds whole, chosen;
  for (const WeightUpdate& one : weights_) whole += one.whole, chosen += one.chosen;
  const double most = std::max(whole.total(), chosen.total());
  const auto show = [&](const Row& row, const UpdateSeconds& of) {
    const auto part = [&](const QString& name, double seconds, const QColor& color) {
      return BarPart{color, seconds, tr("%1 %2").arg(name, time_beside(seconds, most))};
    };
    row.bar->set_parts(
        {part(tr("Adding up and reducing gradients"), of.reduce, colors.network[0]),
         part(tr("Updating"), of.update, colors.compute[2]), part(tr("Gathering"), of.gather, colors.network[1])},
        most);
    row.figure->setText(time_beside(of.total(), most));
  };
  show(updates_.whole, whole);
  show(updates_.chosen, chosen);
}

void WeightsSection::show_weights() {
  show_step();
  show_updates();
  const int count = int(weights_.size()), shown = all_ ? count : std::min(count, kShown);
  const auto sharded = std::count_if(weights_.begin(), weights_.end(), [](const auto& one) { return one.sharded(); });
  if (count > kShown)
    head_->set_link(all_ ? tr("longest %1").arg(kShown) : tr("all %1, %2 sharded").arg(count).arg(sharded), true);
  else
    head_->set_value(tr("%1 of %2 sharded").arg(sharded).arg(count));
  const double longest = weights_.front().whole.total();
  rows_->removeRows(0, rows_->rowCount());
  rows_->setHorizontalHeaderLabels({tr("Weight"), tr("Shards"), tr("Time")});
  for (int r = 0; r < shown; ++r) {
    const WeightUpdate& one = weights_[std::size_t(r)];
    const QString texts[] = {name_text(one), shards_text(one), time_beside(one.chosen.total(), longest)};
    QList<QStandardItem*> items;
    for (const QString& text : texts) {
      items << new QStandardItem(text);
      items.back()->setToolTip(tool_tip(one));
    }
    items.back()->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    rows_->appendRow(items);
  }
  table_->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  table_->setFixedHeight(table_->header()->sizeHint().height() + shown * table_->sizeHintForRow(0) + 4);
}

QString WeightsSection::text() const {
  QStringList lines;
  for (const Bars* bars : {&step_, &updates_})
    for (const Row* row : {&bars->whole, &bars->chosen})
      if (!row->bar->isHidden()) lines << bars->caption->text() + u' ' + row->name->text() + u' ' + row->figure->text();
  for (int r = 0; r < rows_->rowCount(); ++r) {
    QStringList cells;
    for (int c = 0; c < rows_->columnCount(); ++c) cells << rows_->item(r, c)->text();
    lines << cells.join(u' ');
  }
  return lines.join(u'\n');
}

}  // namespace turnpoint::views
