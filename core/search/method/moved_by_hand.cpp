// SPDX-License-Identifier: Apache-2.0
#include "core/search/method/moved_by_hand.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <chrono>

#include "core/base/text.h"
#include "core/search/method/ratio_result.h"

namespace turnpoint::search {

namespace {

constexpr std::string_view kByHand = "by-hand=";

class MovedByHand : public Searcher {
 public:
  MovedByHand(std::unique_ptr<Searcher> found, std::string title, std::string parameters, RatioMoves moves)
      : found_(std::move(found)),
        title_(std::move(title)),
        parameters_(std::move(parameters)),
        moves_(std::move(moves)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    const auto begin = std::chrono::steady_clock::now();
    const auto found = found_->run(scenario, pass, context);
    if (!found) return found;
    const AnyPlan any = (*found)->plans->plan(0);
    const RatioPlanPtr* const plan = std::get_if<RatioPlanPtr>(&any);
    if (!plan) return usage_error(fmt::format("{} has no parts of unlike size here that could be moved", title_));
    auto moved = with_moves(*scenario, **plan, moves_);
    if (!moved) return moved.error();
    auto result = result_of(scenario, std::move(*moved));
    result->method = (*found)->method, result->method_options = parameters_;
    result->notes = (*found)->notes;
    result->explanations.push_back(fmt::format("The plan of {}, which takes {}, with parts moved by hand. {}.", title_,
                                               format_seconds((*plan)->cost.time_s()),
                                               fmt::join(describe_moves(*scenario, **plan, moves_), "; ")));
    result->search_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return ResultPtr(result);
  }

 private:
  std::unique_ptr<Searcher> found_;
  std::string title_, parameters_;
  RatioMoves moves_;
};

void append(std::string& text, std::string_view part) {
  if (!text.empty()) text += ':';
  text += part;
}

}  // namespace

Expected<ByHand> take_by_hand(const std::string& method, std::string_view parameters) {
  ByHand taken;
  bool written = false;
  for (const std::string_view part : split(parameters, ':')) {
    if (!part.starts_with(kByHand)) {
      append(taken.others, part);
      continue;
    }
    if (std::exchange(written, true))
      return usage_error(fmt::format("method {} has the parameter 'by-hand' twice", method));
    const auto moves = read_moves(part.substr(kByHand.size()));
    if (!moves) return usage_error(fmt::format("method {}: by-hand: {}", method, moves.error().what));
    taken.moves = *moves;
  }
  return taken;
}

std::string with_by_hand(std::string_view parameters, const RatioMoves& moves) {
  std::string text;
  bool written = moves.empty();
  for (const std::string_view part : split(parameters, ':')) {
    if (part.empty()) continue;
    append(text, part);
    if (written || !part.starts_with(kByHand)) continue;
    text += '+' + text_of_moves(moves);
    written = true;
  }
  if (!written) append(text, std::string(kByHand) + text_of_moves(moves));
  return text;
}

std::string by_hand_words() { return fmt::format("{}CUT@RATIO[+CUT@RATIO]", kByHand); }

std::string by_hand_begin() { return std::string(kByHand); }

std::unique_ptr<Searcher> moved_by_hand(std::unique_ptr<Searcher> found, std::string title, std::string parameters,
                                        RatioMoves moves) {
  return std::make_unique<MovedByHand>(std::move(found), std::move(title), std::move(parameters), std::move(moves));
}

}  // namespace turnpoint::search
