// SPDX-License-Identifier: Apache-2.0
#include "app/pinned_searches.h"

#include <algorithm>
#include <mutex>

#include "app/document.h"
#include "app/scenario_builder.h"
#include "app/search_runner.h"
#include "app/task_manager.h"
#include "core/search/objectives.h"
#include "views/common/format.h"

namespace turnpoint::app {

namespace {
const QString kPurpose = QStringLiteral("pinned_searches");
}

struct PinnedSearches::Mailbox {
  struct Answer {
    PinnedSearch search;
    Expected<ResultPtr> result;
    bool final = false;
  };
  std::mutex mutex;
  std::vector<Answer> found;
};

PinnedSearches::PinnedSearches(const SearchBackend& backend, TaskManager& tasks, Document& document,
                               SearchRunner& runner, QObject* parent)
    : QObject(parent), backend_(backend), tasks_(tasks), document_(document), runner_(runner) {
  connect(&runner_, &SearchRunner::became_settled, this, &PinnedSearches::start_if_due);
}

void PinnedSearches::set(std::vector<PinnedSearch> searches) {
  waiting_ = std::move(searches);
  stopped_ = false;
  if (running_) {
    running_.reset();
    tasks_.cancel_purpose(kPurpose);
  }
  start_if_due();
}

void PinnedSearches::start_if_due() {
  // The session's own frontier goes first: it is what the chart is about.
  if (running_ || stopped_ || waiting_.empty() || !runner_.settled() || !runner_.up_to_date()) return;
  auto mailbox = std::make_shared<Mailbox>();
  running_ = mailbox;
  tasks_.start(
      kPurpose, tr("Pinned frontiers"),
      [this, mailbox, searches = waiting_](const RunContext& context) { work(searches, mailbox, context); },
      [this, mailbox](TaskOutcome outcome) {
        if (mailbox != running_) return start_if_due();
        take(mailbox);
        running_.reset();
        stopped_ = outcome != TaskOutcome::finished;
      });
}

void PinnedSearches::work(const std::vector<PinnedSearch>& searches, const std::shared_ptr<Mailbox>& mailbox,
                          const RunContext& context) {
  std::vector<ScenarioPtr> scenarios(searches.size());
  std::vector<std::unique_ptr<Searcher>> searchers(searches.size());
  std::vector<bool> ended(searches.size(), false);
  for (const SearchPass pass : {SearchPass::coarse, SearchPass::exact})
    for (std::size_t i = 0; i < searches.size(); ++i) {
      if (context.cancelled()) return;
      if (ended[i]) continue;
      RunContext part = context;
      part.progress = [&, i](const Progress& inner) {
        const double done = static_cast<double>(i) + std::clamp(inner.fraction, 0.0, 1.0);
        const double of = static_cast<double>(searches.size());
        if (context.progress)
          context.progress({searches[i].label + ": " + inner.phase,
                            pass == SearchPass::coarse ? 0.1 * done / of : 0.1 + 0.9 * done / of});
      };
      const auto run = [&]() -> Expected<ResultPtr> {
        if (!searchers[i]) {
          const auto& methods = backend_.methods();
          const auto& name = searches[i].method;
          const auto colon = std::min(name.find(':'), name.size());
          const auto method = std::find_if(methods.begin(), methods.end(),
                                           [&](const Method& each) { return name.compare(0, colon, each.name) == 0; });
          if (method == methods.end()) return bad_input("no method '" + name + "'");
          const Contender wanted = contender(*method, colon < name.size() ? name.substr(colon + 1) : std::string());
          const auto state = build_scenario(backend_, searches[i].scenario, {});
          if (!state) return state.error();
          scenarios[i] = state->scenario;
          if (const auto reason = wanted.refuses(*scenarios[i]); !reason.empty()) return usage_error(reason);
          searchers[i] = wanted.make();
        }
        return searchers[i]->run(scenarios[i], pass, part);
      };
      auto result = run();
      if (!result && result.error().code == ErrorCode::cancelled) return;
      ended[i] = pass == SearchPass::exact || !result || (*result)->exact;
      if (ended[i]) searchers[i].reset();
      {
        const std::lock_guard lock(mailbox->mutex);
        mailbox->found.push_back({searches[i], std::move(result), ended[i]});
      }
      QMetaObject::invokeMethod(
          this, [this, mailbox] { take(mailbox); }, Qt::QueuedConnection);
    }
}

void PinnedSearches::take(const std::shared_ptr<Mailbox>& mailbox) {
  if (mailbox != running_) return;
  std::vector<Mailbox::Answer> found;
  {
    const std::lock_guard lock(mailbox->mutex);
    found.swap(mailbox->found);
  }
  for (const auto& answer : found) {
    if (answer.result)
      pin(answer.search, **answer.result);
    else
      emit failed(answer.result.error(), views::to_qt(answer.search.label));
    if (!answer.final) continue;
    const auto at = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const PinnedSearch& each) { return each.label == answer.search.label; });
    if (at != waiting_.end()) waiting_.erase(at);
  }
}

void PinnedSearches::pin(const PinnedSearch& search, const Result& result) {
  const views::PinnedFrontier frontier{views::to_qt(search.label), search.method, result.points};
  auto all = document_.pinned();
  const auto at = std::find_if(all.begin(), all.end(), [&](const views::PinnedFrontier& each) {
    return each.label == frontier.label && each.method == frontier.method;
  });
  if (at == all.end())
    all.push_back(frontier);
  else
    *at = frontier;
  document_.set_pinned(std::move(all));
}

}  // namespace turnpoint::app
