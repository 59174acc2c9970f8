// SPDX-License-Identifier: Apache-2.0
// The manual (resources/manual) in a window of its own: its pages at the left, in the order of the first page's list.
#pragma once

#include <QDialog>
#include <QUrl>

class QLabel;
class QListWidget;
class QTextBrowser;

namespace turnpoint::app {

class ManualWindow : public QDialog {
  Q_OBJECT

 public:
  explicit ManualWindow(QWidget* parent = nullptr);

  /// Where a link leads: a page of the manual or of what is packed with it; else it is said that it is part of the
  /// sources. Addresses of the web are the desktop's to open.
  void open(const QUrl& link);
  QTextBrowser* page() { return page_; }
  QListWidget* pages() { return pages_; }

 private:
  void show_place(const QUrl& page);

  QListWidget* pages_;
  QTextBrowser* page_;
  QLabel* said_;
};

}  // namespace turnpoint::app
