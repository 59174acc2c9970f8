// SPDX-License-Identifier: Apache-2.0
#include "views/plan/layers_section.h"

#include <QEvent>
#include <QLabel>
#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {

/// With places where a line may end, so that a long path never widens the dock.
QString breakable_name(const QString& name) {
  constexpr int kLongest = 24;  // letters without a place to break
  QString text;
  int run = 0;
  for (const QChar letter : name) {
    text += letter;
    ++run;
    if (letter == u' ') run = 0;
    if (letter.isHighSurrogate()) continue;  // with its other half it is one letter
    if (letter == u'/' || letter == u'.' || letter == u'_' || run >= kLongest) text += QChar(0x200b), run = 0;
  }
  return text;
}

}  // namespace

LayersSection::LayersSection(QWidget* parent)
    : QWidget(parent), head_(new SectionHead(tr("Layer by layer"), this)), lines_label_(new QLabel(this)) {
  setObjectName(QStringLiteral("layers_section"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 8);
  column->setSpacing(4);
  head_->setToolTip(tr("Layers, and what stands outside of them, that are treated alike, from the first to the last"));
  lines_label_->setObjectName(QStringLiteral("layer_lines"));
  lines_label_->setTextFormat(Qt::RichText);
  lines_label_->setWordWrap(true);
  lines_label_->setFont(secondary_font(font()));
  QSizePolicy policy = lines_label_->sizePolicy();
  policy.setHorizontalPolicy(QSizePolicy::Ignored);
  lines_label_->setSizePolicy(policy);
  column->addWidget(head_);
  column->addWidget(lines_label_);
  connect(head_, &SectionHead::clicked, this, [this] {
    by_hand_ = !open();
    show_lines();
  });
  hide();
}

void LayersSection::set_plan(std::shared_ptr<const Plan> plan, const ModelPtr& model) {
  if (plan == plan_ && model == model_) return;
  plan_ = std::move(plan);
  model_ = model;
  lines_ = plan_ && model_ ? words_by_layer(*plan_, *model_) : std::vector<LayerWords>();
  show_lines();
}

bool LayersSection::open() const { return by_hand_.value_or(lines_.size() <= kShort); }

void LayersSection::show_lines() {
  setVisible(!lines_.empty());
  if (lines_.empty()) return;
  head_->set_link(open()               ? tr("Hide")
                  : lines_.size() == 1 ? tr("Show 1 line")
                                       : tr("Show %1 lines").arg(lines_.size()),
                  true);
  lines_label_->setVisible(open());
  const ThemeColors& colors = theme_colors(palette());
  QString html;
  for (const LayerWords& line : lines_)
    html += QStringLiteral("<p style='margin:0 0 4px 0; color:%1'><span style='color:%2'>%3</span>: %4</p>")
                .arg(colors.secondary.name(), colors.text.name(), breakable_name(to_qt(place_of(line))).toHtmlEscaped(),
                     to_qt(line.words).toHtmlEscaped());
  lines_label_->setText(html);
  lines_label_->setAccessibleName(text());
}

QString LayersSection::text() const {
  QStringList lines;
  if (open())
    for (const LayerWords& line : lines_) lines << to_qt(describe(line));
  return lines.join(u'\n');
}

void LayersSection::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && lines_label_) show_lines();
}

}  // namespace turnpoint::views
