// SPDX-License-Identifier: Apache-2.0
#include "app/measure_dialog.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include "views/common/check_outline.h"
#include "views/common/format.h"
#include "views/common/note_label.h"

namespace turnpoint::app {

namespace {
constexpr int kUsualBudget_s = 60, kLeastBudget_s = 5, kMostBudget_s = 3600;
}  // namespace

MeasureDialog::MeasureDialog(ModelPtr model, QWidget* parent)
    : QDialog(parent),
      model_(std::move(model)),
      backend_(new QComboBox(this)),
      ranks_(new QSpinBox(this)),
      budget_(new QSpinBox(this)),
      with_model_(new views::OutlinedCheckBox(this)),
      fresh_(new views::OutlinedCheckBox(tr("Measure everything again"), this)) {
  setObjectName(QStringLiteral("measure_dialog"));
  setWindowTitle(tr("Measure this machine"));
  backend_->addItem(tr("Automatic"), static_cast<int>(ProbeBackend::automatic));
  backend_->addItem(tr("CPU ranks"), static_cast<int>(ProbeBackend::cpu));
  backend_->addItem(tr("CUDA GPU"), static_cast<int>(ProbeBackend::cuda));
  backend_->setToolTip(tr("Automatic: the GPU where there is one, else the processor's cores"));
  ranks_->setRange(0, kMaximumProbeRanks);
  ranks_->setSpecialValueText(tr("one per core, 2 to 8"));
  ranks_->setToolTip(tr("Processes that stand for devices where the processor is measured"));
  budget_->setRange(kLeastBudget_s, kMostBudget_s);
  budget_->setValue(kUsualBudget_s);
  budget_->setSuffix(tr(" s"));
  budget_->setToolTip(tr("What is not measured by then is left to formulas"));
  with_model_->setText(model_ ? tr("Also the operators of %1").arg(views::to_qt(model_->name))
                              : tr("Also the operators of the open model"));
  with_model_->setEnabled(model_ != nullptr);
  with_model_->setToolTip(model_ ? tr("In the sizes that plans give them") : tr("No model with operators is open"));
  fresh_->setObjectName(QStringLiteral("measure_fresh"));
  fresh_->setToolTip(tr("Otherwise times measured here with the same libraries in the last %1 days are taken over")
                         .arg(static_cast<int>(MeasureOptions().most_age_days)));
  auto* note = new views::NoteLabel(this);
  note->setText(
      tr("Copies, collectives and the usual kinds of operators are timed. Searches and other programs that run "
         "meanwhile make the machine look slower than it is."));
  note->setWordWrap(true);
  auto* form = new QFormLayout();
  form->addRow(tr("Backend"), backend_);
  form->addRow(tr("CPU ranks"), ranks_);
  form->addRow(tr("Time budget"), budget_);
  form->addRow(QString(), with_model_);
  form->addRow(QString(), fresh_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, this);
  buttons->button(QDialogButtonBox::Ok)->setText(tr("Measure"));
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(backend_, &QComboBox::currentIndexChanged, this, &MeasureDialog::show_backend);
  auto* column = new QVBoxLayout(this);
  column->addLayout(form);
  column->addWidget(note);
  column->addWidget(buttons);
  show_backend();
}

void MeasureDialog::show_backend() {
  ranks_->setEnabled(static_cast<ProbeBackend>(backend_->currentData().toInt()) != ProbeBackend::cuda);
}

MeasureOptions MeasureDialog::options() const {
  MeasureOptions options;
  options.backend = static_cast<ProbeBackend>(backend_->currentData().toInt());
  options.ranks = ranks_->isEnabled() ? ranks_->value() : 0;
  options.budget_s = budget_->value();
  options.fresh = fresh_->isChecked();
  if (with_model_->isEnabled() && with_model_->isChecked()) options.model = model_;
  return options;
}

}  // namespace turnpoint::app
