// SPDX-License-Identifier: Apache-2.0
#include "views/scenario/method_settings.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <algorithm>

#include "views/common/check_outline.h"
#include "views/common/format.h"
#include "views/common/note_label.h"
#include "views/common/section_head.h"

namespace turnpoint::views {

MethodSettings::MethodSettings(const QString& title, std::span<const OptionRecord> options, const QString& parameters,
                               bool changes, QWidget* parent)
    : QFrame(parent, Qt::Popup), options_(options) {
  setObjectName(QStringLiteral("method_settings"));
  setAccessibleName(tr("Settings of %1").arg(title));
  setAttribute(Qt::WA_DeleteOnClose);
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  QStringList shown, others;
  for (const QString& part : parameters.split(u':', Qt::SkipEmptyParts)) {
    const std::string key = part.section(u'=', 0, 0).toStdString();
    const bool known = std::any_of(options.begin(), options.end(), [&](const auto& one) { return one.key == key; });
    (known ? shown : others) << part;
  }
  others_ = others.join(u':');
  values_ = parse_parameters(options, shown.join(u':').toStdString()).value_or(*parse_parameters(options, {}));
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(12, 10, 12, 10);
  grid->setHorizontalSpacing(12);
  grid->setVerticalSpacing(6);
  grid->addWidget(new SectionHead(title, this), 0, 0, 1, 2);
  int row = 1;
  for (std::size_t i = 0; i < options.size(); ++i, ++row) {
    const OptionRecord& option = options[i];
    QWidget* editor = make_editor(option, values_[i], i);
    editor->setObjectName(to_qt(option.key));
    editor->setAccessibleName(to_qt(option.text));
    editor->setToolTip(to_qt(option.help));
    if (option.type == OptionType::flag) {
      grid->addWidget(editor, row, 0, 1, 2);
      continue;
    }
    auto* label = new QLabel(to_qt(option.text), this);
    label->setBuddy(editor);
    label->setToolTip(to_qt(option.help));
    grid->addWidget(label, row, 0);
    grid->addWidget(editor, row, 1);
  }
  text_ = new NoteLabel(this);
  text_->setMinimumWidth(220);
  grid->addWidget(text_, row++, 0, 1, 2);
  add_ = new QPushButton(changes ? tr("Change") : tr("Add to the chart"), this);
  add_->setObjectName(QStringLiteral("add_variant"));
  add_->setDefault(true);
  grid->addWidget(add_, row, 0, 1, 2, Qt::AlignRight);
  connect(add_, &QPushButton::clicked, this, &MethodSettings::accept);
  show_text();
}

QWidget* MethodSettings::make_editor(const OptionRecord& option, double value, std::size_t index) {
  const auto edit = [this, index](double edited) {
    values_[index] = edited;
    show_text();
  };
  if (option.type == OptionType::flag) {
    auto* box = new OutlinedCheckBox(to_qt(option.text), this);
    box->setChecked(value != 0);
    connect(box, &QCheckBox::toggled, this, [edit](bool on) { edit(on); });
    return box;
  }
  if (option.type == OptionType::choice) {
    auto* box = new QComboBox(this);
    for (const auto& choice : option.choices) box->addItem(to_qt(choice));
    box->setCurrentIndex(int(value));
    connect(box, &QComboBox::currentIndexChanged, this, [edit](int chosen) { edit(chosen); });
    return box;
  }
  if (option.type == OptionType::integer) {
    auto* box = new QSpinBox(this);
    box->setRange(int(option.minimum), int(option.maximum));
    if (!option.unit.empty()) box->setSuffix(u' ' + to_qt(option.unit));
    if (option.minimum == 0)
      box->setSpecialValueText(option.choices.empty() ? tr("the rest") : to_qt(option.choices.front()));
    box->setValue(int(value));
    connect(box, &QSpinBox::valueChanged, this, [edit](int chosen) { edit(chosen); });
    return box;
  }
  auto* box = new QDoubleSpinBox(this);
  box->setRange(option.minimum, option.maximum);
  box->setSuffix(option.unit.empty() ? QString() : u' ' + to_qt(option.unit));
  box->setValue(value);
  connect(box, &QDoubleSpinBox::valueChanged, this, [edit](double chosen) { edit(chosen); });
  return box;
}

QString MethodSettings::parameters() const {
  const QString chosen = to_qt(format_parameters(options_, values_));
  return chosen + (chosen.isEmpty() || others_.isEmpty() ? QString() : QStringLiteral(":")) + others_;
}

void MethodSettings::show_text() {
  const QString text = parameters().replace(u':', u' ');
  text_->setText(text.isEmpty() ? tr("nothing is chosen yet") : text);
  add_->setEnabled(!text.isEmpty());
}

void MethodSettings::accept() {
  if (!add_->isEnabled()) return;
  const QString chosen = parameters();
  close();
  emit accepted(chosen);
}

// The style's own frame is darker than dark ground.
void MethodSettings::paintEvent(QPaintEvent* event) {
  QFrame::paintEvent(event);
  QPainter painter(this);
  painter.setPen(theme_colors(palette()).axis);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void MethodSettings::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) return accept();
  QFrame::keyPressEvent(event);
}

}  // namespace turnpoint::views
