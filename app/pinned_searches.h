// SPDX-License-Identifier: Apache-2.0
// Frontiers that a session asks for beside its own: searched in the background, a sketch of each first, and pinned.
#pragma once

#include <QObject>
#include <memory>
#include <vector>

#include "app/search_backend.h"
#include "app/session.h"

namespace turnpoint::app {

class Document;
class SearchRunner;
class TaskManager;

class PinnedSearches : public QObject {
  Q_OBJECT
 public:
  PinnedSearches(const SearchBackend& backend, TaskManager& tasks, Document& document, SearchRunner& runner,
                 QObject* parent = nullptr);

  /// Replaces what is being searched; an empty list ends it.
  void set(std::vector<PinnedSearch> searches);
  /// Those without an exact answer yet; what a session saved now must ask for again.
  const std::vector<PinnedSearch>& waiting() const { return waiting_; }
  bool settled() const { return !running_ && (waiting_.empty() || stopped_); }

 signals:
  void failed(const turnpoint::Error& error, const QString& label);

 private:
  struct Mailbox;
  void start_if_due();
  void work(const std::vector<PinnedSearch>& searches, SearchPass pass, const std::shared_ptr<Mailbox>& mailbox,
            const RunContext& context);
  Expected<ResultPtr> run(const PinnedSearch& search, SearchPass pass, const RunContext& context) const;
  void take(const std::shared_ptr<Mailbox>& mailbox);
  void pin(const PinnedSearch& search, const ResultPtr& result);

  const SearchBackend& backend_;
  TaskManager& tasks_;
  Document& document_;
  SearchRunner& runner_;
  std::vector<PinnedSearch> waiting_;
  std::shared_ptr<Mailbox> running_;
  bool stopped_ = false, sketched_ = false;
};

}  // namespace turnpoint::app
