// SPDX-License-Identifier: Apache-2.0
#include "app/start_page.h"

#include <QAction>
#include <QCommandLinkButton>
#include <QCoreApplication>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QScrollArea>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/recent_name.h"
#include "app/studies.h"
#include "core/hardware/cluster.h"
#include "views/common/check_outline.h"
#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/section_head.h"

namespace turnpoint::app {

namespace {

constexpr Sample kSamples[] = {
    {QT_TRANSLATE_NOOP("StartPage", "Transformer"), "builtin:transformer-s", "v100-16gb-2x8"},
    {QT_TRANSLATE_NOOP("StartPage", "GPT-2"), "builtin:gpt2", "v100-16gb-2x8"},
    {QT_TRANSLATE_NOOP("StartPage", "ResNet-50"), "builtin:resnet50", "v100-16gb-1x8"},
    {QT_TRANSLATE_NOOP("StartPage", "Llama-2 7B"), "builtin:llama-2-7b", "h100-80gb-1x8"},
};

QToolButton* make_link(QWidget* parent, const QString& icon, const QString& text) {
  auto* link = new QToolButton(parent);
  link->setAutoRaise(true);
  link->setIcon(views::themed_icon(icon));
  link->setText(text);
  link->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  return link;
}

/// A preset is called by its title, as in the Scenario dock.
QString hardware_title(const char* name) {
  const auto cluster = cluster_preset(name);
  return cluster ? views::to_qt((*cluster)->title) : QString::fromLatin1(name);
}

}  // namespace

std::span<const Sample> samples() { return kSamples; }

StartPage::StartPage(const ActionSet& actions, QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("start_page"));
  auto* body = new QWidget(this);
  body->setMaximumWidth(640);
  auto* grid = new QGridLayout(body);
  grid->setSpacing(12);
  const auto big = [&](ActionId id, const QString& text, const QString& note) {
    auto* button = new QCommandLinkButton(text, note, body);
    button->setIcon(actions[id]->icon());
    connect(button, &QCommandLinkButton::clicked, actions[id], &QAction::trigger);
    return button;
  };
  grid->addWidget(big(ActionId::open_model, tr("Open model…"),
                      tr("ONNX, torch.export (.pt2), Hugging Face config.json, TensorFlow graph, task graph")),
                  0, 0);
  grid->addWidget(big(ActionId::open_session, tr("Open session…"), tr("A .turnpoint file")), 0, 1);
  auto* drop = new QLabel(tr("or drop a model, hardware profile or .turnpoint session anywhere in the window"), body);
  drop->setAlignment(Qt::AlignCenter);
  drop->setMargin(10);
  grid->addWidget(drop, 1, 0, 1, 2);
  grid->addWidget(new views::SectionHead(tr("Recent"), body), 2, 0);
  grid->addWidget(new views::SectionHead(tr("Samples"), body), 2, 1);
  recent_ = new QVBoxLayout;
  auto* sample_column = new QVBoxLayout;
  for (int i = 0; const Sample& sample : kSamples) {
    auto* link = make_link(body, QStringLiteral("search"), title_of(sample));
    connect(link, &QToolButton::clicked, this, [this, i] { emit sample_chosen(i); });
    sample_column->addWidget(link);
    ++i;
  }
  sample_column->addSpacing(8);
  sample_column->addWidget(new views::SectionHead(tr("Sample studies"), body));
  for (int i = 0; const Study& study : studies()) {
    auto* link = make_link(body, QStringLiteral("file"), QCoreApplication::translate("Studies", study.title));
    link->setToolTip(tr("A session with notes: what the TensorOpt paper states, and what comes out here"));
    connect(link, &QToolButton::clicked, this, [this, i] { emit study_chosen(i); });
    sample_column->addWidget(link);
    ++i;
  }
  recent_->setAlignment(Qt::AlignTop);
  sample_column->addStretch(1);
  grid->addLayout(recent_, 3, 0);
  grid->addLayout(sample_column, 3, 1);
  opens_sample_ = new views::OutlinedCheckBox(tr("Open the first sample when nothing else is open"), body);
  connect(opens_sample_, &QCheckBox::toggled, this, &StartPage::opens_sample_changed);
  grid->addWidget(opens_sample_, 4, 0, 1, 2);
  auto* keys = new QLabel(tr("Ctrl+O open · Ctrl+K find · F1 help"), body);
  keys->setFont(views::secondary_font(font()));
  grid->addWidget(keys, 5, 0, 1, 2);
  // A small window scrolls the page; it must not make the window larger.
  auto* page = new QWidget(this);
  auto* middle = new QVBoxLayout(page);
  middle->addStretch(1);
  middle->addWidget(body, 0, Qt::AlignHCenter);
  middle->addStretch(2);
  auto* scroll = new QScrollArea(this);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setWidget(page);
  scroll->viewport()->setAutoFillBackground(false);
  page->setAutoFillBackground(false);
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(scroll);
}

QString StartPage::title_of(const Sample& sample) {
  return tr("%1 on %2").arg(tr(sample.title), hardware_title(sample.hardware));
}

void StartPage::set_recent(const QStringList& paths) {
  while (QLayoutItem* item = recent_->takeAt(0)) {
    if (item->widget()) item->widget()->deleteLater();
    delete item;
  }
  for (const QString& path : paths) {
    const bool builtin = path.startsWith(QStringLiteral("builtin:"));
    auto* link = make_link(this, QStringLiteral("file"), builtin ? path : recent_name(path));
    link->setToolTip(path);
    if (!builtin && !QFileInfo::exists(file_of(path))) {
      link->setEnabled(false);
      link->setText(tr("%1 — file is gone").arg(link->text()));
    }
    connect(link, &QToolButton::clicked, this, [this, path] { emit path_chosen(path); });
    recent_->addWidget(link);
  }
  if (paths.isEmpty()) recent_->addWidget(new QLabel(tr("Nothing yet"), this));
  recent_->addStretch(1);
}

void StartPage::keep_clear(int top) { layout()->setContentsMargins(0, top, 0, 0); }

void StartPage::set_opens_sample(bool on) {
  const QSignalBlocker quiet(opens_sample_);
  opens_sample_->setChecked(on);
}

}  // namespace turnpoint::app
