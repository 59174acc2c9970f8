// SPDX-License-Identifier: Apache-2.0
#include "views/validation/engine_fields.h"

#include <QClipboard>
#include <QFileDialog>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QTimer>
#include <QToolButton>

#include "views/common/elided_label.h"
#include "views/common/icons.h"

namespace turnpoint::views {

namespace {

constexpr int kLeastField = 90;  // a field that is narrower shows no word whole
constexpr int kTypingRest_ms = 300;

QLineEdit* add_field(QWidget* part, const QString& title, const char* name, const QString& example,
                     const QString& tip) {
  auto* row = new QHBoxLayout(part);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(4);
  auto* label = new QLabel(title, part);
  auto* field = new QLineEdit(part);
  label->setBuddy(field);
  field->setObjectName(QLatin1String(name));
  field->setPlaceholderText(example);
  field->setToolTip(tip);
  field->setAccessibleName(title);
  field->setClearButtonEnabled(true);
  field->setMinimumWidth(kLeastField);
  row->addWidget(label);
  row->addWidget(field, 1);
  return field;
}

}  // namespace

EngineFields::EngineFields(QWidget* parent)
    : QWidget(parent),
      rest_(new QTimer(this)),
      one_process_(new Elided<QLabel>(this)),
      launcher_part_(new QWidget(this)),
      code_part_(new QWidget(this)),
      copy_(new QToolButton(this)) {
  setObjectName(QStringLiteral("engine_fields"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 0, 8, 3);
  row->setSpacing(12);
  launcher_ = add_field(launcher_part_, tr("&Launcher"), "engine_launcher", tr("processes of this machine"),
                        tr("Starts one process for each device of the plan, also on other hosts: torchrun "
                           "--nproc-per-node 8, srun or mpirun -n 8. Without one, they are started on this machine."));
  code_ = add_field(code_part_, tr("&Model code"), "engine_model_code", tr("FILE.py:FUNCTION"),
                    tr("A function without parameters that returns your torch.nn.Module. Of a config.json of a known "
                       "family Transformers makes the model, and none is needed."));
  auto* choose = new QToolButton(code_part_);
  choose->setIcon(themed_icon(QStringLiteral("open")));
  choose->setAutoRaise(true);
  choose->setToolTip(tr("Choose the file that makes the model"));
  choose->setAccessibleName(choose->toolTip());
  code_part_->layout()->addWidget(choose);
  copy_->setObjectName(QStringLiteral("engine_copy_command"));
  copy_->setText(tr("Copy command"));
  row->addWidget(launcher_part_, 3);
  row->addWidget(one_process_, 3);
  row->addWidget(code_part_, 2);
  row->addWidget(copy_);
  rest_->setSingleShot(true);
  rest_->setInterval(kTypingRest_ms);
  connect(rest_, &QTimer::timeout, this, &EngineFields::changed);
  for (QLineEdit* field : {launcher_, code_}) {
    connect(field, &QLineEdit::textChanged, rest_, qOverload<>(&QTimer::start));
    connect(field, &QLineEdit::editingFinished, this, &EngineFields::tell);
  }
  connect(choose, &QToolButton::clicked, this, &EngineFields::choose_code);
  connect(copy_, &QToolButton::clicked, this, [this] {
    tell();  // the lines of what stands there now
    if (!command_.isEmpty()) QGuiApplication::clipboard()->setText(command_);
  });
}

void EngineFields::tell() {
  if (!rest_->isActive()) return;
  rest_->stop();
  emit changed();
}

void EngineFields::set_engine(const QString& name, bool one_process, bool takes_model) {
  launcher_part_->setVisible(!one_process);
  one_process_->setText(tr("%1 runs all devices of a machine in one process: it takes no launcher.").arg(name));
  one_process_->setVisible(one_process);
  code_part_->setVisible(takes_model);
}

void EngineFields::set_command(const QString& command, const QString& why_none) {
  command_ = command;
  copy_->setEnabled(!command.isEmpty());
  copy_->setToolTip(
      command.isEmpty()
          ? why_none
          : tr("The lines that do the same in a terminal, such as one of a cluster; Open report shows what "
               "they write:") +
                QStringLiteral("\n\n") + command.trimmed());
}

QString EngineFields::launcher() const { return launcher_part_->isHidden() ? QString() : launcher_->text().trimmed(); }
QString EngineFields::model_code() const { return code_part_->isHidden() ? QString() : code_->text().trimmed(); }

void EngineFields::choose_code() {
  const QString path =
      QFileDialog::getOpenFileName(this, tr("Code that makes the model"), {}, tr("Python files (*.py);;All files (*)"));
  if (path.isEmpty()) return;
  const QString function = code_->text().section(u':', -1);
  code_->setText(path + u':' + (code_->text().contains(u':') ? function : QStringLiteral("make_model")));
  code_->setFocus();
}

}  // namespace turnpoint::views
