// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/sweep.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>

#include "core/base/parallel.h"
#include "core/frontier/orders.h"
#include "core/search/method/unite.h"

namespace turnpoint::search {

namespace {

constexpr double kSurveyShare = 0.4;      // of the progress that is shown
constexpr int kTurns = 3;                 // how often a better plan may move the turning point
constexpr double kWholeBatchShare = 0.5;  // of the work of all exact searches, and of the progress that is left
// Of a device's memory, for plain sums of plans that most likely fit: room for what peaks have beyond them. A guess on
// the safe side, made for no network; where peaks prove it wrong, the gap is that of the slow plans.
constexpr double kLikelyFits = 0.75;

/// Searches side by side as one: from `before` on, `whole` of all that there is to do.
class JoinedProgress {
 public:
  JoinedProgress(const ProgressSink& sink, std::size_t searches, double before, double whole)
      : sink_(sink), done_(searches, 0), before_(before), each_(whole / static_cast<double>(searches)) {}

  ProgressSink of(std::size_t search, int micro_batches) {
    if (!sink_) return {};
    return [this, search, micro_batches](const Progress& inner) {
      const std::lock_guard lock(mutex_);
      done_[search] = std::max(done_[search], std::clamp(inner.fraction, 0.0, 1.0));
      const double all = std::accumulate(done_.begin(), done_.end(), 0.0);
      // Of several at once their numbers would flicker.
      const std::string whose = done_.size() > 1    ? "micro-batches"
                                : micro_batches > 1 ? fmt::format("{} micro-batches", micro_batches)
                                                    : "the whole batch";
      sink_({whose + ": " + inner.phase, before_ + each_ * all});
    };
  }

 private:
  const ProgressSink& sink_;
  std::mutex mutex_;
  std::vector<double> done_;
  double before_, each_;
};

class SweepSearcher : public Searcher {
 public:
  SweepSearcher(std::string method, MicroBatching how, const Enough& enough,
                std::function<std::vector<int>(const Scenario&)> numbers_of)
      : method_(std::move(method)), how_(std::move(how)), enough_(enough), numbers_of_(std::move(numbers_of)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    const auto start = std::chrono::steady_clock::now();
    if (scenario->model != model_ || scenario->settings.accounting != accounting_) {
      numbers_ = numbers_of_(*scenario);
      model_ = scenario->model;
      accounting_ = scenario->settings.accounting;
      used_.clear();
    }
    if (numbers_.size() == 1) {
      One& one = of(0);
      one.sweep = {};
      return one.searcher->run(scenario, pass, context);
    }
    answers_ = std::vector<ResultPtr>(numbers_.size());
    earlier_.clear();
    whole_batch_.reset();
    until_ = deadline_of(enough_, start);
    const auto done = !how_.follows               ? ask(every_number(), {}, scenario, pass, context)
                      : pass == SearchPass::exact ? search_exactly(scenario, context)
                                                  : sketch(scenario, context);
    if (!done) return done.error();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    auto united = united_in(elapsed.count());
    united->notes = answers_.front()->notes;
    say_what_was_left_out(*united);
    if (how_.follows && used_.empty())
      if (auto chosen = choose_used(*united, scenario, pass, context); !chosen) return chosen.error();
    answers_.clear();
    earlier_.clear();
    whole_batch_.reset();
    return ResultPtr(std::move(united));
  }

  // Those of use here first: a hand that comes too early finds them ready.
  Expected<void> get_ready(const ScenarioPtr& scenario, const RunContext& context) override {
    if (numbers_.empty() || scenario->model != model_) return {};
    if (numbers_.size() > 1 && used_.empty()) return {};
    std::vector<std::size_t> order = used_;
    for (const std::size_t i : every_number())
      if (std::find(used_.begin(), used_.end(), i) == used_.end()) order.push_back(i);
    for (std::size_t k = 0; k < order.size(); ++k) {
      One& one = of(order[k]);
      one.sweep = {.share = share_of(std::max<std::size_t>(1, used_.size())), .enough_gap = kOpenGap};
      one.sweep.of_use = numbers_.size() == 1 || k < used_.size();
      if (auto done = one.searcher->get_ready(scenario, context); !done) return done;
    }
    return {};
  }

 private:
  using Ask = Sweep::Ask;
  using Numbers = std::span<const std::size_t>;  // indices into numbers_

  struct One {
    Sweep sweep;
    std::unique_ptr<Searcher> searcher;  // follows it
  };

  Expected<void> search_exactly(const ScenarioPtr& scenario, const RunContext& context) {
    auto done = search_after_surveys(scenario, context);
    auto forgotten = ask(every_number(), {.ask = Ask::forget}, scenario, SearchPass::exact, {{}, {}, context.threads});
    return done ? forgotten : done;
  }

  // Every exact search but the first knows what the surveys and that one have found.
  Expected<void> search_after_surveys(const ScenarioPtr& scenario, const RunContext& context) {
    used_.clear();
    const double open = open_gap();
    Sweep sweep{.ask = Ask::survey, .share = share_of(numbers_.size()), .enough_gap = open, .until = until_};
    const auto every = every_number();
    if (auto done = ask_for_all(sweep, open > 0, scenario, SearchPass::exact, context, kSurveyShare); !done)
      return done;
    earlier_ = answers_;
    if (is_late()) return {};
    sweep.ask = Ask::search;
    sweep.known = all_known();
    // What all have found only grows: these are searched only where the whole frontier of every number is had.
    if (auto done = forget_all_but(left_open(sweep.known, open), scenario); !done) return done;
    sweep.share = kWholeBatchShare;
    const double left = 1 - kSurveyShare, first = left * kWholeBatchShare;
    if (!answers_[0]->exact) {
      const auto done = ask(Numbers(every).first(1), sweep, scenario, SearchPass::exact, context, kSurveyShare, first);
      if (!done) return done;
      sweep.known = frontier::unite(sweep.known, costs_of(*answers_[0]));
    }
    // Of small problems the whole frontier of every number is had.
    const bool all = answers_[0]->exact;
    frontier::CostList reached = sweep.known;
    if (!all && open > 0 && considered_fit(*scenario, sweep.known)) {
      sweep.slowest = slowest_considered();
      reached = frontier::unite(reached, {{0, sweep.slowest}});
    }
    if (is_late()) return {};
    const auto others = left_open(reached, all ? -1 : open);
    if (auto done = forget_all_but(others, scenario); !done) return done;
    sweep.share = (1 - kWholeBatchShare) * share_of(std::max<std::size_t>(1, others.size()));
    auto done = ask(others, sweep, scenario, SearchPass::exact, context, kSurveyShare + first, left - first);
    return done && open <= kOpenGap ? close_where_it_turns(scenario, context) : done;
  }

  std::shared_ptr<Result> united_in(double seconds) const {
    return unite_certified(method_, answers_, earlier_, slowest_considered(), seconds);
  }

  /// People take the plan at the turning point: less than elsewhere may stay open there. A better plan may move it.
  Expected<void> close_where_it_turns(const ScenarioPtr& scenario, const RunContext& context) {
    for (int turn = 0; turn < kTurns && !is_late(); ++turn) {
      const auto united = united_in(0);
      if (!united->turning_point || gap_at(*united, *united->turning_point).value_or(0) <= kOpenWhereItTurns) return {};
      const ResultPoint& point = united->points[*united->turning_point];
      std::vector<std::size_t> open;
      for (std::size_t i = 0; i < numbers_.size(); ++i) {
        if (is_left_out(i)) continue;
        const ResultPtr one = unite_certified(method_, {answers_[i]}, {earlier_[i]}, slowest_considered(), 0);
        const double bound = frontier::time_at(one->lower_bound, point.memory_bytes);
        if (one->exact || one->lower_bound.empty() || bound > point.time_s * (1 - kOpenWhereItTurns)) continue;
        open.push_back(i);
        earlier_[i] = one;
      }
      Sweep sweep{.ask = Ask::within, .enough_gap = kOpenWhereItTurns, .until = until_};
      sweep.share = share_of(std::max<std::size_t>(2, open.size()));
      sweep.within = {point.memory_bytes, point.time_s};
      const RunContext quiet{context.stop, {}, context.threads};
      if (auto done = ask(open, sweep, scenario, SearchPass::exact, quiet); !done) return done;
    }
    return {};
  }

  /// Asks the whole batch first, and the next number beside it. Where most likely there is room for the whole batch,
  /// and where it takes time to look, numbers whose computing alone takes longer than any of its plans are left out
  /// (`may_leave`): their answers have no points. Not the largest, which tells how little memory will do.
  Expected<void> ask_for_all(const Sweep& sweep, bool may_leave, const ScenarioPtr& scenario, SearchPass pass,
                             const RunContext& context, double whole = 1) {
    const auto every = every_number();
    const Numbers begin = Numbers(every).first(std::min<std::size_t>(2, every.size()));
    const double first = whole * static_cast<double>(begin.size()) / static_cast<double>(every.size());
    if (auto done = ask(begin, sweep, scenario, pass, context, 0, first); !done) return done;
    whole_batch_ = answers_.front();
    std::vector<std::size_t> others(every.begin() + static_cast<std::ptrdiff_t>(begin.size()), every.end());
    if (may_leave && others.size() > 1 && !is_instant(of(0).sweep.work) &&
        considered_fit(*scenario, costs_of(*whole_batch_))) {
      Sweep floor = sweep;
      floor.ask = Ask::floor;
      const Numbers between = Numbers(others).first(others.size() - 1);
      if (auto done = ask(between, floor, scenario, pass, {context.stop, {}, context.threads}); !done) return done;
      std::erase_if(others, [&](std::size_t i) {
        return answers_[i] && answers_[i]->lower_bound.front().time > slowest_considered();
      });
    }
    return ask(others, sweep, scenario, pass, context, first, whole - first);
  }

  static bool is_instant(const frontier::Work& work) {
    const frontier::Policy policy;
    return work.products + policy.term_products * work.terms <= policy.instant_products;
  }

  bool is_left_out(std::size_t i) const { return answers_[i] && answers_[i]->points.empty(); }

  /// The numbers but the first whose plans may lie lower by more than `open`.
  std::vector<std::size_t> left_open(const frontier::CostList& known, double open) const {
    std::vector<std::size_t> left;
    for (std::size_t i = 1; i < numbers_.size(); ++i)
      if (!is_left_out(i) && !answers_[i]->exact && gap_above(*answers_[i], known) > open) left.push_back(i);
    return left;
  }

  void say_what_was_left_out(Result& united) const {
    std::vector<int> left_out;
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      if (is_left_out(i)) left_out.push_back(numbers_[i]);
    if (left_out.empty() || used_.size() > 0) return;
    united.explanations.push_back(fmt::format(
        "Not searched: {} micro-batches. Their computing alone takes longer than the whole batch's slowest plan, which "
        "most likely fits. A gap of 0 has them searched.",
        fmt::join(left_out, ", ")));
  }

  /// Gives memory back: of deep networks all surveys together take gigabytes.
  Expected<void> forget_all_but(Numbers kept, const ScenarioPtr& scenario) {
    std::vector<std::size_t> closed;
    for (std::size_t i = 1; i < numbers_.size(); ++i)
      if (std::find(kept.begin(), kept.end(), i) == kept.end()) closed.push_back(i);
    return ask(closed, {.ask = Ask::forget}, scenario, SearchPass::exact, {{}, {}, threads_});
  }

  // Once it is known which numbers are of use, coarse passes at other prices search these alone; of the others they
  // tell what is certain. The search of each knows what plans that all of these found before cost at these prices.
  // Where the hand rests all numbers are priced, and those that count here are searched, too, from then on.
  Expected<void> sketch(const ScenarioPtr& scenario, const RunContext& context) {
    const auto every = every_number();
    const bool rests = sketched_ && same_scenario(*sketched_, *scenario);
    sketched_ = scenario;
    Sweep sweep{.enough_gap = kOpenGap};
    if (!used_.empty()) {
      const Numbers looked_at = rests ? Numbers(every) : Numbers(used_);
      sweep.share = share_of(looked_at.size());
      const Sweep prices{.ask = Ask::prices, .share = sweep.share};
      if (auto done = ask(looked_at, prices, scenario, SearchPass::coarse, context); !done) return done;
      std::vector<frontier::CostList> kept(numbers_.size());
      for (const std::size_t i : looked_at) kept[i] = of(i).sweep.kept;
      if (rests && std::none_of(used_.begin(), used_.end(), [&](std::size_t i) { return kept[i].empty(); })) {
        std::vector<std::size_t> both;
        std::ranges::set_union(used_, of_use(kept, considered_from(kept)), std::back_inserter(both));
        used_ = std::move(both);
      }
      for (const std::size_t i : used_) sweep.known = frontier::unite(sweep.known, kept[i]);
    }
    if (used_.empty()) {
      sweep.share = share_of(every.size());
      return ask_for_all(sweep, open_gap() > 0, scenario, SearchPass::coarse, context);
    }
    sweep.share = share_of(used_.size());
    if (auto done = ask(used_, sweep, scenario, SearchPass::coarse, context); !done) return done;
    std::vector<std::size_t> others;
    for (const std::size_t i : every)
      if (!answers_[i]) others.push_back(i);
    if (std::all_of(used_.begin(), used_.end(), [&](std::size_t i) { return of(i).sweep.moved; }))
      return ask(others, {.ask = Ask::bound}, scenario, SearchPass::coarse, context);
    used_.clear();  // it is not only prices that have changed
    return ask(others, sweep, scenario, SearchPass::coarse, context);
  }

  // The least memory of a plan that is no slower than all of the whole batch.
  static std::int64_t considered_from(const std::vector<frontier::CostList>& costs) {
    std::int64_t from = costs.front().front().memory;
    for (const auto& own : costs) {
      const auto first = std::find_if(own.begin(), own.end(), [&](const frontier::CostPoint& point) {
        return point.time <= costs.front().front().time;
      });
      if (first != own.end()) from = std::min(from, first->memory);
    }
    return from;
  }

  // The numbers that add to what those below them reach, where it is worth a look; 1, against which they are judged;
  // and the one after the last, which other prices may bring in. Without costs are those that were left out.
  std::vector<std::size_t> of_use(const std::vector<frontier::CostList>& costs, std::int64_t from) const {
    std::vector<std::size_t> used;
    frontier::CostList below;
    std::size_t last = 0;
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const bool adds = std::any_of(costs[i].begin(), costs[i].end(), [&](const frontier::CostPoint& p) {
        return p.memory >= from && p.time < (1 - kOpenGap) * frontier::time_at(below, p.memory);
      });
      if (adds) last = i;
      if (i == 0 || adds) used.push_back(i);
      below = frontier::unite(below, costs[i]);
    }
    if (last + 1 < numbers_.size() && !costs[last + 1].empty()) used.push_back(last + 1);
    return used;
  }

  // Which numbers moves of a slider are searched over, and with which plans they begin.
  Expected<void> choose_used(const Result& united, const ScenarioPtr& scenario, SearchPass pass,
                             const RunContext& context) {
    const std::int64_t from = united.points[united.first_considered()].memory_bytes;
    std::vector<frontier::CostList> costs;
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      costs.push_back(costs_of(*answers_[i]));
      if (!earlier_.empty()) costs.back() = frontier::unite(costs.back(), costs_of(*earlier_[i]));
    }
    used_ = of_use(costs, from);
    sketched_.reset();
    Sweep sweep{.ask = Ask::moves, .known = costs_of(united)};
    std::erase_if(sweep.known, [&](const frontier::CostPoint& p) { return p.memory < from; });
    return ask(every_number(), sweep, scenario, pass, {context.stop, {}, context.threads});
  }

  // Answers for these numbers, side by side. Of all progress what they make goes on from `before`.
  Expected<void> ask(Numbers asked, const Sweep& sweep, const ScenarioPtr& scenario, SearchPass pass,
                     const RunContext& context, double before = 0, double whole = 1) {
    if (asked.empty()) return {};
    const int threads = ThreadPool::affordable(context.threads),
              side_by_side = std::clamp(threads, 1, static_cast<int>(asked.size()));
    if (!pool_ || threads_ != threads) {
      pool_.emplace(std::min(threads, static_cast<int>(numbers_.size())));
      threads_ = threads;
    }
    JoinedProgress progress(context.progress, asked.size(), before, whole);
    std::vector<std::optional<Error>> errors(asked.size());
    for (const std::size_t i : asked) of(i).sweep = sweep;
    pool_->for_each(asked.size(), [&](std::size_t k, int) {
      const std::size_t i = asked[k];
      auto answer = searchers_.at(numbers_[i])
                        .searcher->run(scenario, pass,
                                       {context.stop, progress.of(k, numbers_[i]),
                                        side_by_side > 1 ? std::max(1, threads / side_by_side) : context.threads});
      if (!answer)
        errors[k] = answer.error();
      else if (sweep.ask != Ask::moves && sweep.ask != Ask::forget && sweep.ask != Ask::prices)
        answers_[i] = std::move(*answer);
    });
    for (const auto& error : errors)
      if (error) return *error;
    return {};
  }

  /// Any plan of the whole batch is at least as fast.
  double slowest_considered() const { return (whole_batch_ ? whole_batch_ : answers_.front())->points.front().time_s; }

  /// Whether a device most likely has room for a plan that is no slower.
  bool considered_fit(const Scenario& scenario, const frontier::CostList& known) const {
    const auto first = std::find_if(known.begin(), known.end(), [slowest = slowest_considered()](const auto& point) {
      return point.time <= slowest;
    });
    const auto limit = static_cast<double>(scenario.memory_limit());
    return first != known.end() && (limit <= 0 || static_cast<double>(first->memory) <= kLikelyFits * limit);
  }

  double open_gap() const { return enough_.gap.value_or(kOpenGap); }
  bool is_late() const { return until_ && std::chrono::steady_clock::now() >= *until_; }

  One& of(std::size_t i) {
    One& one = searchers_[numbers_[i]];
    if (one.searcher) return one;
    one.sweep.orders = orders_;
    one.searcher = how_.make(numbers_[i], how_.follows ? &one.sweep : nullptr, enough_);
    return one;
  }

  frontier::CostList all_known() const {
    frontier::CostList known;
    for (const auto& answer : answers_) known = frontier::unite(known, costs_of(*answer));
    return known;
  }

  static double share_of(std::size_t searches) { return 1 / static_cast<double>(searches); }

  std::vector<std::size_t> every_number() const {
    std::vector<std::size_t> all(numbers_.size());
    std::iota(all.begin(), all.end(), std::size_t(0));
    return all;
  }

  std::string method_;
  MicroBatching how_;
  Enough enough_;
  Deadline until_;  ///< of one run
  std::function<std::vector<int>(const Scenario&)> numbers_of_;
  ModelPtr model_;  ///< to which, with its accounting, the numbers belong
  Accounting accounting_ = Accounting::full;
  std::vector<int> numbers_;
  std::vector<std::size_t> used_;  ///< of the numbers: what moves of a slider are searched over; empty: not known
  ScenarioPtr sketched_;           ///< at the last move; null: none since an exact search
  std::vector<ResultPtr> answers_, earlier_;  ///< of one run, by number; surveys that exact searches have followed
  ResultPtr whole_batch_;                     ///< of the same run: its first answer, where all numbers were asked
  std::map<int, One> searchers_;              ///< by number of micro-batches; stay where they are
  std::shared_ptr<frontier::Orders> orders_ = std::make_shared<frontier::Orders>();
  std::optional<ThreadPool> pool_;
  int threads_ = 0;
};

}  // namespace

Deadline deadline_of(const Enough& enough, std::chrono::steady_clock::time_point start) {
  if (!(enough.seconds > 0)) return std::nullopt;
  return start +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(enough.seconds));
}

double seconds_until(const Deadline& deadline) {
  if (!deadline) return 0;
  const std::chrono::duration<double> left = *deadline - std::chrono::steady_clock::now();
  return std::max(1e-6, left.count());
}

std::unique_ptr<Searcher> make_sweep(std::string method, MicroBatching how, const Enough& enough,
                                     std::function<std::vector<int>(const Scenario&)> numbers_of) {
  return std::make_unique<SweepSearcher>(std::move(method), std::move(how), enough, std::move(numbers_of));
}

}  // namespace turnpoint::search
