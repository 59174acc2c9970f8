// SPDX-License-Identifier: Apache-2.0
// Completes the last word of a line that is a split of one's own or a variant of a method: "dp=4 ze", "fsdp gr".
#pragma once

#include <QCompleter>
#include <QStringList>
#include <QStringListModel>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/options.h"
#include "core/search/method/method.h"

class QLineEdit;

namespace turnpoint::views {

/// What such a line may say, from the records of methods' parameters; those must outlive whoever holds it.
struct SplitWords {
  struct Variant {
    std::vector<std::string> words;        ///< how its parameters are written, for people
    std::vector<std::string> completions;  ///< what may stand behind its name
    std::string_view other_method;         ///< key of the parameter that names another, whose parameters follow
  };
  std::span<const OptionRecord> own;       ///< of splits of one's own
  std::string own_name;                    ///< of the method that takes them
  std::map<std::string, Variant> methods;  ///< those with parameters, by their names
};
SplitWords split_words(std::span<const Method> methods);
/// How such lines are written and what their words mean, for a tool tip.
QString split_help(const SplitWords& words);

class SplitCompleter : public QCompleter {
  Q_OBJECT
 public:
  /// Offers what fits the words of `line` so far.
  SplitCompleter(const SplitWords& words, QLineEdit* line);

  /// What may follow this text; its last word has been begun.
  QStringList offered(const QString& text) const;
  /// An entry of the list is about to be taken over; Enter does not end the line.
  bool is_choosing() const;

 protected:
  QStringList splitPath(const QString& path) const override;
  QString pathFromIndex(const QModelIndex& index) const override;

 private:
  struct Variant {
    QStringList completions;
    QString other;  ///< "of=", behind which another method is named
  };
  QStringList own_;  ///< names of methods among them
  std::map<QString, Variant> methods_;
  std::map<QString, QStringList> as_other_;  ///< by the name of the other method
  QStringListModel model_;
  QString typed_;
};

}  // namespace turnpoint::views
