// SPDX-License-Identifier: Apache-2.0
#include "views/scenario/method_settings.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QScreen>
#include <QSpinBox>
#include <QTimer>
#include <algorithm>

#include "views/common/check_outline.h"
#include "views/common/format.h"
#include "views/common/note_label.h"
#include "views/common/section_head.h"

namespace turnpoint::views {

namespace {

// Rows of the grid: those of the other method's boxes lie between the method's own and what ends the list.
constexpr int kOtherRow = 100, kTextRow = 200, kAddRow = 201;

/// A number of any size, with as many digits as it has: 0.003, 1000.
class PlainNumberBox : public QDoubleSpinBox {
 public:
  explicit PlainNumberBox(QWidget* parent) : QDoubleSpinBox(parent) {
    setDecimals(9);
    setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
  }
  QString textFromValue(double value) const override {
    QLocale plain = locale();
    plain.setNumberOptions(plain.numberOptions() | QLocale::OmitGroupSeparator);
    QString text = plain.toString(value, 'f', decimals());
    while (text.endsWith(plain.zeroDigit())) text.chop(1);
    if (text.endsWith(plain.decimalPoint())) text.chop(1);
    return text;
  }
};

}  // namespace

MethodSettings::MethodSettings(const QString& title, std::span<const OptionRecord> options, const QString& parameters,
                               bool changes, QWidget* parent, OtherMethodBoxes other)
    : QFrame(parent, Qt::Popup),
      own_{{options.begin(), options.end()}, {}},
      other_(std::move(other)),
      grid_(new QGridLayout(this)) {
  setObjectName(QStringLiteral("method_settings"));
  setAccessibleName(tr("Settings of %1").arg(title));
  setAttribute(Qt::WA_DeleteOnClose);
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  grid_->setContentsMargins(12, 10, 12, 10);
  grid_->setHorizontalSpacing(12);
  grid_->setVerticalSpacing(6);
  grid_->addWidget(new SectionHead(title, this), 0, 0, 1, 2);
  text_ = new NoteLabel(this);
  text_->setMinimumWidth(220);
  grid_->addWidget(text_, kTextRow, 0, 1, 2);
  add_ = new QPushButton(changes ? tr("Change") : tr("Add to the chart"), this);
  add_->setObjectName(QStringLiteral("add_variant"));
  add_->setDefault(true);
  grid_->addWidget(add_, kAddRow, 0, 1, 2, Qt::AlignRight);
  connect(add_, &QPushButton::clicked, this, &MethodSettings::accept);
  const QStringList rest = own_.take(parameters.split(u':', Qt::SkipEmptyParts));
  add_rows(own_, 1);
  others_ = take_other(rest).join(u':');
  show_text();
}

QStringList MethodSettings::Boxes::take(const QStringList& parts) {
  QStringList shown, rest;
  for (const QString& part : parts) {
    const std::string key = part.section(u'=', 0, 0).toStdString();
    const bool known = std::any_of(options.begin(), options.end(), [&](const auto& one) { return one.key == key; });
    (known ? shown : rest) << part;
  }
  values = parse_parameters(options, shown.join(u':').toStdString()).value_or(*parse_parameters(options, {}));
  return rest;
}

std::string_view MethodSettings::other_name() const {
  for (std::size_t i = 0; i < own_.options.size(); ++i)
    if (own_.options[i].key == other_.key) return own_.options[i].choices[std::size_t(own_.values[i])];
  return {};
}

/// The boxes of the method that is chosen now, with what these parts say; returns those that say nothing of it.
QStringList MethodSettings::take_other(const QStringList& parts) {
  for (QWidget* row : other_rows_) delete row;
  other_rows_.clear();
  of_other_ = {};
  const std::string_view name = other_name();
  if (name.empty()) return parts;
  // What both are asked for is this method's own.
  for (const OptionRecord& option : other_.options(name))
    if (std::none_of(own_.options.begin(), own_.options.end(), [&](const auto& own) { return own.key == option.key; }))
      of_other_.options.push_back(option);
  const QStringList rest = of_other_.take(parts);
  if (of_other_.options.empty()) return rest;
  other_rows_ = add_rows(of_other_, kOtherRow + 1);
  for (QWidget* row : other_rows_)
    if (row->focusPolicy() != Qt::NoFocus) setTabOrder(row, add_);  // the button stays behind all boxes
  auto* head = new SectionHead(tr("Parameters of %1").arg(to_qt(name)), this);
  grid_->addWidget(head, kOtherRow, 0, 1, 2);
  other_rows_.push_back(head);
  return rest;
}

void MethodSettings::choose_other() {
  take_other({});
  others_.clear();
  for (QWidget* row : other_rows_) row->show();
  stay_on_screen();
}

/// With more or fewer boxes than before.
void MethodSettings::stay_on_screen() {
  grid_->activate();
  adjustSize();
  const QRect room = screen()->availableGeometry();
  move(std::max(room.left(), std::min(x(), room.right() - width())),
       std::max(room.top(), std::min(y(), room.bottom() - height())));
}

std::vector<QWidget*> MethodSettings::add_rows(Boxes& boxes, int row) {
  std::vector<QWidget*> added;
  for (std::size_t i = 0; i < boxes.options.size(); ++i, ++row) {
    const OptionRecord& option = boxes.options[i];
    QWidget* editor = make_editor(boxes, i);
    editor->setObjectName(to_qt(option.key));
    editor->setAccessibleName(to_qt(option.text));
    editor->setToolTip(to_qt(option.help));
    added.push_back(editor);
    if (option.type == OptionType::flag) {
      grid_->addWidget(editor, row, 0, 1, 2);
      continue;
    }
    auto* label = new QLabel(to_qt(option.text), this);
    label->setBuddy(editor);
    label->setToolTip(to_qt(option.help));
    added.push_back(label);
    grid_->addWidget(label, row, 0);
    grid_->addWidget(editor, row, 1);
  }
  return added;
}

QWidget* MethodSettings::make_editor(Boxes& boxes, std::size_t index) {
  const OptionRecord& option = boxes.options[index];
  const double value = boxes.values[index];
  const bool chooses_other = &boxes == &own_ && !other_.key.empty() && option.key == other_.key;
  const auto edit = [this, &boxes, index, chooses_other](double edited) {
    boxes.values[index] = edited;
    if (chooses_other) choose_other();
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
    box->view()->installEventFilter(this);
    connect(box, &QComboBox::currentIndexChanged, this, [edit](int chosen) { edit(chosen); });
    return box;
  }
  if (option.type == OptionType::integer) {
    auto* box = new QSpinBox(this);
    box->setRange(int(option.minimum), int(option.maximum));
    if (!option.unit.empty()) box->setSuffix(u' ' + to_qt(option.unit));
    if (option.minimum == 0 || !option.choices.empty())
      box->setSpecialValueText(option.choices.empty() ? tr("the rest") : to_qt(option.choices.front()));
    box->setValue(int(value));
    connect(box, &QSpinBox::valueChanged, this, [edit](int chosen) { edit(chosen); });
    return box;
  }
  auto* box = new PlainNumberBox(this);
  box->setRange(option.minimum, option.maximum);
  box->setSuffix(option.unit.empty() ? QString() : u' ' + to_qt(option.unit));
  if (option.minimum == 0 && option.unit == "s") box->setSpecialValueText(tr("none"));  // a limit of time
  box->setValue(value);
  connect(box, &QDoubleSpinBox::valueChanged, this, [edit](double chosen) { edit(chosen); });
  return box;
}

QString MethodSettings::parameters() const {
  QStringList parts{to_qt(format_parameters(own_.options, own_.values)),
                    to_qt(format_parameters(of_other_.options, of_other_.values)), others_};
  parts.removeAll(QString());
  return parts.join(u':');
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

bool MethodSettings::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Hide) {
    list_closes_ = true;
    QTimer::singleShot(0, this, [this] { list_closes_ = false; });
  }
  return QFrame::eventFilter(watched, event);
}

// The style's own frame is darker than dark ground.
void MethodSettings::paintEvent(QPaintEvent* event) {
  QFrame::paintEvent(event);
  QPainter painter(this);
  painter.setPen(theme_colors(palette()).axis);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void MethodSettings::keyPressEvent(QKeyEvent* event) {
  // The key that chooses from a list comes here, too, when the list has closed.
  if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) return list_closes_ ? void() : accept();
  QFrame::keyPressEvent(event);
}

}  // namespace turnpoint::views
