// SPDX-License-Identifier: Apache-2.0
#include "app/manual_window.h"

#include <QDesktopServices>
#include <QDialogButtonBox>
#include <QFile>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QRegularExpression>
#include <QSplitter>
#include <QTextBrowser>
#include <QVBoxLayout>

// Outside of namespaces, as the macro wants it.
static void init_manual_resource() { Q_INIT_RESOURCE(manual); }

namespace turnpoint::app {

namespace {

const QUrl kFirst(QStringLiteral("qrc:/resources/manual/README.md"));
constexpr int kAddress = Qt::UserRole;

QString text_of(const QUrl& page) {
  QFile file(u':' + page.path());
  return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

QString title_of(const QUrl& page) {
  static const QRegularExpression kHeading(QStringLiteral("^# (.+)$"), QRegularExpression::MultilineOption);
  return kHeading.match(text_of(page)).captured(1);
}

/// The pages that the first one lists, and itself.
QList<QUrl> pages_of_manual() {
  static const QRegularExpression kEntry(QStringLiteral("^- \\[[^\\]]+\\]\\(([^)]+)\\)"),
                                         QRegularExpression::MultilineOption);
  QList<QUrl> pages = {kFirst};
  auto entry = kEntry.globalMatch(text_of(kFirst));
  while (entry.hasNext()) pages << kFirst.resolved(QUrl(entry.next().captured(1)));
  return pages;
}

}  // namespace

ManualWindow::ManualWindow(QWidget* parent) : QDialog(parent) {
  init_manual_resource();
  setObjectName(QStringLiteral("manual_window"));
  setWindowTitle(tr("Manual"));
  setAttribute(Qt::WA_DeleteOnClose);
  pages_ = new QListWidget(this);
  pages_->setAccessibleName(tr("Pages of the manual"));
  for (const QUrl& page : pages_of_manual()) {
    auto* item = new QListWidgetItem(title_of(page), pages_);
    item->setData(kAddress, page);
    item->setToolTip(item->text());
  }
  page_ = new QTextBrowser(this);
  page_->setOpenLinks(false);
  page_->document()->setDocumentMargin(16);
  page_->setAccessibleName(tr("Page"));
  auto* split = new QSplitter(this);
  split->addWidget(pages_);
  split->addWidget(page_);
  split->setStretchFactor(1, 1);
  split->setSizes({260, 740});
  said_ = new QLabel(this);
  said_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  auto* back = buttons->addButton(tr("Back"), QDialogButtonBox::ActionRole);
  back->setEnabled(false);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(split, 1);
  layout->addWidget(said_);
  layout->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(back, &QPushButton::clicked, page_, &QTextBrowser::backward);
  connect(page_, &QTextBrowser::backwardAvailable, back, &QPushButton::setEnabled);
  connect(page_, &QTextBrowser::anchorClicked, this, &ManualWindow::open);
  connect(page_, &QTextBrowser::sourceChanged, this, &ManualWindow::show_place);
  connect(pages_, &QListWidget::currentItemChanged, this, [this](QListWidgetItem* item) {
    if (item) open(item->data(kAddress).toUrl());
  });
  resize(1000, 720);
  open(kFirst);
  page_->setFocus();
}

void ManualWindow::open(const QUrl& link) {
  const QUrl target = page_->source().resolved(link);
  said_->clear();
  if (target.scheme().startsWith(u"http")) {
    QDesktopServices::openUrl(target);
    return;
  }
  if (!target.path().endsWith(u".md") || !QFile::exists(u':' + target.path())) {
    said_->setText(tr("%1 is part of the sources.").arg(target.path().mid(1)));
    return;
  }
  if (target.adjusted(QUrl::RemoveFragment) != page_->source().adjusted(QUrl::RemoveFragment))
    page_->setSource(target, QTextDocument::MarkdownResource);
}

void ManualWindow::show_place(const QUrl& page) {
  for (int row = 0; row < pages_->count(); ++row)
    if (pages_->item(row)->data(kAddress).toUrl().path() == page.path()) return pages_->setCurrentRow(row);
  pages_->setCurrentItem(nullptr);  // so that a click on the page before leads back to it
}

}  // namespace turnpoint::app
