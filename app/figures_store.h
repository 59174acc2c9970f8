// SPDX-License-Identifier: Apache-2.0
// Figures of answers, without the plans behind them, by what was asked: in memory and in a folder of files that outlives
// the program. They are drawn at once, and the search that finds the plans follows. Thread-safe.
#pragma once

#include <QString>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/plan/result.h"

namespace turnpoint::app {

/// The result with only as many points as can be told apart: each is told apart from the one before
/// (views::told_apart). Its ends stay, and so does what is named of it; it has no plans.
ResultPtr thinned(const Result& result);

class FiguresStore {
 public:
  /// All files of the folder together, and all answers in memory.
  static constexpr std::int64_t kMostBytes = std::int64_t(64) << 20;
  static constexpr std::size_t kMostInMemory = std::size_t(8) << 20;

  /// `folder` empty: memory alone. It is made when the first file is written.
  explicit FiguresStore(QString folder = {}, std::int64_t most_bytes = kMostBytes);

  /// Answers that can be carried (app/carried_answers.h); the oldest make room. A file that cannot be written is left
  /// out: what is lost is time. From any thread.
  void keep(const std::string& question, const ResultPtr& answer);
  /// In memory only, as a session's own answers are.
  void lend(const std::string& question, ResultPtr figures);
  /// Null: none, or a damaged file, which is taken away.
  ResultPtr find(const std::string& question);

 private:
  QString path_of(const std::string& question) const;
  void remember(const std::string& question, ResultPtr figures);
  void make_room() const;

  struct Entry {
    std::string question;
    ResultPtr figures;
  };
  const QString folder_;
  const std::int64_t most_bytes_;
  std::mutex mutex_;
  std::list<Entry> entries_;  ///< newest first
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
  std::size_t bytes_ = 0;
};

}  // namespace turnpoint::app
