// SPDX-License-Identifier: Apache-2.0
#include "views/plan/validated_section.h"

#include <QGridLayout>
#include <QPainter>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/note_label.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/validation/validation_content.h"

namespace turnpoint::views {

/// Predicted filled, measured open below it, both from the left on one scale.
class PairBar : public QWidget {
 public:
  explicit PairBar(QWidget* parent) : QWidget(parent) {
    setMinimumWidth(56);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  }
  QSize sizeHint() const override { return {80, 15}; }
  void set_values(double predicted, std::optional<double> measured) {
    predicted_ = predicted;
    measured_ = measured;
    update();
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    const ThemeColors& colors = theme_colors(palette());
    const double most = std::max(predicted_, measured_.value_or(0));
    if (!(most > 0)) return;
    QPainter painter(this);
    const double wide = width() - 1;
    painter.fillRect(QRectF(0, 1, predicted_ / most * wide, 6), colors.accent);
    if (!measured_) return;
    const QRectF open(0.5, 8.5, *measured_ / most * wide, 5);
    painter.fillRect(open, colors.base);
    painter.setPen(QPen(colors.accent, 1.2));
    painter.drawRect(open);
  }

 private:
  double predicted_ = 0;
  std::optional<double> measured_;
};

ValidatedSection::ValidatedSection(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("validated_section"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(4);
  head_ = new SectionHead(tr("Predicted and measured"), this);
  column->addWidget(head_);
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(8);
  grid->setVerticalSpacing(3);
  grid->setColumnStretch(1, 1);
  time_ = add_row(grid, 0, tr("Time"));
  memory_ = add_row(grid, 1, tr("Peak"));
  column->addLayout(grid);
  facts_ = new NoteLabel(this);
  facts_->setTextFormat(Qt::PlainText);
  facts_->setWordWrap(true);
  column->addWidget(facts_);
  connect(head_, &SectionHead::clicked, this, &ValidatedSection::report_wanted);
}

ValidatedSection::Row ValidatedSection::add_row(QGridLayout* grid, int at, const QString& name) {
  const Row row{new QLabel(name, this), new PairBar(this), new QLabel(this), new QLabel(this)};
  row.bar->setAccessibleName(tr("%1, predicted and measured").arg(name));
  row.figures->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  row.error->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  grid->addWidget(row.name, 2 * at, 0);
  grid->addWidget(row.bar, 2 * at, 1);
  grid->addWidget(row.figures, 2 * at, 2);
  grid->addWidget(row.error, 2 * at + 1, 1, 1, 2);  // words beside the figures would be wider than the dock
  return row;
}

void ValidatedSection::show_row(const Row& row, const ComparedValue& value, bool bytes) {
  ValidationRow shown;
  shown.part = bytes ? ValidationPart::memory : ValidationPart::step;
  shown.value = value;
  row.figures->setText(figures_text(shown, shown.value));
  row.error->setText(error_text(value, bytes));
  const auto error = value.error();
  const bool large = error && std::abs(*error) > kLargeError;
  QPalette colors = row.name->palette();
  if (large) colors.setColor(QPalette::WindowText, theme_colors(colors).warning);
  row.error->setPalette(colors);
  QFont font = row.name->font();
  font.setBold(large);
  row.error->setFont(font);
  row.error->setToolTip(error ? tr("The prediction, relative to what was measured") : QString());
  row.bar->set_values(value.predicted, value.measured);
  row.bar->setAccessibleDescription(row.figures->text() + u' ' + row.error->text());
}

void ValidatedSection::set_report(std::shared_ptr<const ValidationReport> report, const QString& how) {
  const ComparedValue* peak = nullptr;
  if (report)
    for (const ComparedValue& value : report->memory)
      if (value.name == "peak") peak = &value;
  for (const auto& [row, there] : {std::pair(&time_, report != nullptr), std::pair(&memory_, peak != nullptr)})
    for (QWidget* part : {static_cast<QWidget*>(row->name), static_cast<QWidget*>(row->bar),
                          static_cast<QWidget*>(row->figures), static_cast<QWidget*>(row->error)})
      part->setVisible(there);
  if (!report) {
    head_->set_value({});
    facts_->setText(with_groups(how));
    return;
  }
  head_->set_link(tr("Report"), true);
  show_row(time_, report->step, false);
  if (peak) show_row(memory_, *peak, true);
  QStringList facts{tr("Filled predicted, open measured"), backend_text(*report), report_date_text(*report)};
  if (report->calibrated) facts << tr("calibrated");
  if (report->disturbed()) facts << tr("the machine was busy meanwhile");
  facts.removeAll(QString());
  facts_->setText(facts.join(QStringLiteral(" \u00b7 ")));
}

QString ValidatedSection::text() const {
  QStringList lines;
  for (const Row* row : {&time_, &memory_})
    if (!row->name->isHidden()) lines << row->name->text() + u' ' + row->figures->text() + u' ' + row->error->text();
  return (lines << facts_->text()).join(u'\n');
}

}  // namespace turnpoint::views
