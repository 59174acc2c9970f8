// SPDX-License-Identifier: Apache-2.0
#include "views/scenario/split_completer.h"

#include <QAbstractItemView>
#include <QLineEdit>

#include "core/search/registry.h"
#include "views/common/format.h"

namespace turnpoint::views {

namespace {

QStringList list_of(const std::vector<std::string>& words) {
  QStringList list;
  for (const std::string& word : words) list << to_qt(word);
  return list;
}

QString last_word(const QString& text) { return text.section(u' ', -1); }

}  // namespace

SplitWords split_words(std::span<const Method> methods) {
  SplitWords words;
  for (const Method& method : methods) {
    if (method.own_split)
      words.own = method.options, words.own_name = method.name;
    else if (SplitWords::Variant variant{words_of_parameters(method), completions_of_parameters(method),
                                         method.other_method};
             !variant.completions.empty())
      words.methods[method.name] = std::move(variant);
  }
  return words;
}

QString split_help(const SplitWords& words) {
  QStringList lines{list_of(parameter_words(words.own)).join(u' ')};
  for (const OptionRecord& option : words.own) lines << to_qt(option.key) + QStringLiteral(": ") + to_qt(option.help);
  lines << QObject::tr("Enter adds it to the chart. A variant of a method begins with its name:");
  for (const auto& [name, variant] : words.methods) lines << to_qt(name) + u' ' + list_of(variant.words).join(u' ');
  return lines.join(u'\n');
}

SplitCompleter::SplitCompleter(const SplitWords& words, QLineEdit* line)
    : QCompleter(line), own_(list_of(parameter_completions(words.own))) {
  for (const auto& [name, variant] : words.methods) {
    own_ << to_qt(name);
    const QString other = variant.other_method.empty() ? QString() : to_qt(variant.other_method) + u'=';
    methods_[to_qt(name)] = {list_of(variant.completions), other};
    as_other_[to_qt(name)] = list_of(variant.completions);
  }
  as_other_[to_qt(words.own_name)] = list_of(parameter_completions(words.own));
  setModel(&model_);
  setCompletionMode(QCompleter::PopupCompletion);
  // Before the line itself asks for completions of what was typed.
  connect(line, &QLineEdit::textEdited, this, [this](const QString& text) {
    typed_ = text;
    model_.setStringList(offered(text));
  });
  line->setCompleter(this);
}

QStringList SplitCompleter::offered(const QString& text) const {
  if (last_word(text).isEmpty()) return {};  // nothing over the window where nothing was begun
  const QStringList before = text.simplified().split(u' ');
  const auto method = before.size() > 1 ? methods_.find(before.front()) : methods_.end();
  QStringList offered = method != methods_.end() ? method->second.completions : own_;
  if (method != methods_.end() && !method->second.other.isEmpty())
    for (const QString& word : before)
      if (word.startsWith(method->second.other))
        if (const auto other = as_other_.find(word.mid(method->second.other.size())); other != as_other_.end())
          offered << other->second;
  // What is there already is not there again; names of methods come first only.
  offered.removeIf([&](const QString& word) {
    if (before.size() > 1 && methods_.contains(word)) return true;
    const QString key = word.section(u'=', 0, 0);
    return std::any_of(before.begin(), before.end() - 1,
                       [&](const QString& other) { return other.section(u'=', 0, 0) == key; });
  });
  offered.removeAll(last_word(text));
  return offered;
}

bool SplitCompleter::is_choosing() const { return popup()->isVisible() && popup()->currentIndex().isValid(); }

QStringList SplitCompleter::splitPath(const QString& path) const { return {last_word(path)}; }

QString SplitCompleter::pathFromIndex(const QModelIndex& index) const {
  return typed_.left(typed_.size() - last_word(typed_).size()) + index.data().toString();
}

}  // namespace turnpoint::views
