// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/hierarchy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/search/accpar/ratio.h"

namespace turnpoint::accpar {

namespace {

constexpr int kMostRounds = 5;  // of types and ratio in turn, which mostly settle in two

Halves halves_of(const Bisection& devices, std::uint32_t part, Objective objective, double bytes_per_element) {
  Halves halves;
  if (objective == Objective::volume) return halves;
  const Part& whole = devices.parts[part];
  for (std::size_t h = 0; h < 2; ++h)
    halves[h] = {1 / devices.parts[whole.halves[h]].flops, bytes_per_element / whole.bandwidth[h]};
  return halves;
}

class TreeSearch {
 public:
  TreeSearch(const Bisection& devices, const Options& options, const RunContext& context)
      : devices_(devices), options_(options), context_(context) {}

  Expected<std::uint32_t> run(std::uint32_t part, const LayerGraph& graph, bool first) {
    if (devices_.parts[part].is_device()) return kDevice;
    std::vector<double> lengths;
    for (const Layer& layer : graph.layers) {
      lengths.insert(lengths.end(), layer.lengths.begin(), layer.lengths.end());
      lengths.push_back(layer.groups);
    }
    const auto [known, fresh] =
        known_.try_emplace({part, std::move(lengths)}, static_cast<std::uint32_t>(result.cuts.size()));
    const std::uint32_t index = known->second;
    if (!fresh) return index;
    result.cuts.emplace_back();
    auto chosen = cut_of(part, graph, first);
    if (!chosen) return chosen.error();
    std::vector<double> others;
    for (const double share : chosen->shares) others.push_back(1 - share);
    for (std::size_t h = 0; h < 2; ++h) {
      const std::uint32_t half = devices_.parts[part].halves[h];
      if (devices_.parts[half].is_device()) {
        chosen->next[h] = kDevice;
        continue;
      }
      const auto next = run(half, cut(graph, chosen->types, h == 0 ? chosen->shares : others), false);
      if (!next) return next;
      chosen->next[h] = *next;
    }
    result.cuts[index] = std::move(*chosen);
    return index;
  }

  Assignment result;

 private:
  Levels levels_of(std::uint32_t part) const {
    const Part& whole = devices_.parts[part];
    return {devices_.parts[whole.halves[0]].levels, devices_.parts[whole.halves[1]].levels};
  }

  /// By speed alone, before anything is known of types.
  double first_guess(std::uint32_t part) const {
    const Part& whole = devices_.parts[part];
    if (options_.ratio == Ratio::equal || whole.alike()) return 0.5;
    return devices_.parts[whole.halves[0]].flops / whole.flops;
  }

  std::optional<NextLevel> next_of(std::uint32_t part, double ratio) const {
    const Part& whole = devices_.parts[part];
    const std::uint32_t half = whole.halves[0];
    if (options_.programme == Programme::published || ratio != 0.5 || devices_.parts[half].is_device()) return {};
    if (options_.objective == Objective::time && !whole.alike()) return {};
    if (first_guess(half) != 0.5) return {};
    return NextLevel{halves_of(devices_, half, options_.objective, options_.bytes_per_element), options_.space,
                     options_.whole_units, levels_of(half)};
  }

  Expected<Cut> cut_of(std::uint32_t part, const LayerGraph& graph, bool first) {
    const Halves halves = halves_of(devices_, part, options_.objective, options_.bytes_per_element);
    const bool fixed = first && options_.first_ratio;
    double ratio = fixed ? *options_.first_ratio : first_guess(part);
    const bool alternate = !fixed && options_.objective == Objective::time && options_.ratio != Ratio::equal &&
                           !devices_.parts[part].alike();
    Cut best;
    bool best_exact = true;
    for (int round = 1; round <= kMostRounds; ++round) {
      const Shares shares = shares_of(graph, options_.space, ratio, options_.whole_units, levels_of(part));
      auto choice = choose_types(graph, shares, halves, options_.programme, next_of(part, ratio), context_);
      if (!choice) return choice.error();
      std::vector<RatioTerm> terms;
      if (alternate) terms = ratio_terms(graph, choice->types, halves);
      if (round == 1 || choice->cost < best.price) {
        best = {part, ratio, std::move(choice->types), std::move(choice->shares), choice->cost, round, {}};
        best_exact = choice->exact;
      }
      best.rounds = round;
      if (!alternate) break;
      const double now = ratio_of(terms);
      if (std::abs(now - ratio) <= 1e-9) break;
      ratio = now;
    }
    result.exact = result.exact && best_exact;
    return best;
  }

  double ratio_of(const std::vector<RatioTerm>& terms) const {
    if (options_.ratio == Ratio::paper) return paper_ratio(terms);
    const auto sum_at = [&](double ratio) {
      double sum = 0;
      for (const RatioTerm& term : terms) sum += term.at(ratio);
      return sum;
    };
    const double balanced = balanced_ratio(terms), least = least_ratio(terms);
    return sum_at(least) < sum_at(balanced) * (1 - 1e-12) ? least : balanced;
  }

  const Bisection& devices_;
  const Options& options_;
  const RunContext& context_;
  std::map<std::pair<std::uint32_t, std::vector<double>>, std::uint32_t> known_;
};

/// Prices cuts from the tensors that are left at each.
class Pricing {
 public:
  Pricing(const Bisection& devices, const Assignment& assignment, Objective objective, double bytes_per_element)
      : devices_(devices), assignment_(assignment), objective_(objective), bytes_(bytes_per_element) {
    done_.resize(assignment.cuts.size());
  }

  AssignmentCost of(std::uint32_t index, std::uint32_t part, const LayerGraph& graph) {
    if (index == kDevice) {
      AssignmentCost cost;
      if (objective_ == Objective::time)
        for (const Layer& layer : graph.layers) cost.compute += layer.flop() / devices_.parts[part].flops;
      cost.total = cost.compute;
      return cost;
    }
    if (done_[index]) return *done_[index];
    const Cut& cut_here = assignment_.cuts[index];
    Halves halves = halves_of(devices_, part, objective_, bytes_);
    for (Rates& rates : halves) rates.per_flop = 0;
    const double exchange = level_cost(graph, cut_here.types, cut_here.shares, halves);
    std::vector<double> others;
    for (const double share : cut_here.shares) others.push_back(1 - share);
    AssignmentCost slower;
    for (std::size_t h = 0; h < 2; ++h) {
      const std::uint32_t half = devices_.parts[part].halves[h];
      if (h == 1 && cut_here.next[1] == cut_here.next[0] && cut_here.next[1] != kDevice) break;
      const AssignmentCost cost =
          of(cut_here.next[h], half, cut(graph, cut_here.types, h == 0 ? cut_here.shares : others));
      if (h == 0 || cost.total > slower.total) slower = cost;
    }
    slower.total += exchange, slower.exchange += exchange;
    slower.levels.insert(slower.levels.begin(), exchange);
    done_[index] = slower;
    return slower;
  }

 private:
  const Bisection& devices_;
  const Assignment& assignment_;
  Objective objective_;
  double bytes_;
  std::vector<std::optional<AssignmentCost>> done_;
};

/// How often each of its lengths can be halved, and all of them: "its batch can be halved 3 times and its output twice,
/// 5 times together".
std::string words_of_halvings(const Layer& layer, Space space) {
  constexpr std::array<std::string_view, kTypes> kLengths = {"batch", "reduction", "output"};
  const auto times = [](int count) {
    return count == 1 ? std::string("once") : count == 2 ? std::string("twice") : fmt::format("{} times", count);
  };
  std::vector<std::string> can, cannot;
  const auto add = [&](std::string_view name, double units) {
    if (const int count = halvings(units); count == 0)
      cannot.push_back(fmt::format("its {}", name));
    else
      can.push_back(fmt::format("its {}{} {}", name, can.empty() ? " can be halved" : "", times(count)));
  };
  for (const Type type : kAllTypes)
    if (allows(space, layer, type))
      add(kLengths[static_cast<std::size_t>(type)], layer.lengths[static_cast<std::size_t>(type)]);
  if (allows(space, layer, Type::output) && layer.grouped()) add("groups", layer.groups);
  std::string words = fmt::format("{}", fmt::join(can, " and "));
  if (can.size() > 1) words += fmt::format(", {} together", times(halvings(layer, space)));
  if (cannot.empty()) return words;
  return fmt::format("{}{}{} cannot be halved", words, can.empty() ? "" : "; ", fmt::join(cannot, " and "));
}

/// Names the layer that has too little for so many devices; nullopt: it is not for lack of length that a search failed.
std::optional<Error> layer_without_enough(const LayerGraph& graph, const Part& whole, Space space) {
  for (const Layer& layer : graph.layers)
    if (halvings(layer, space) < whole.levels)
      return too_small(layer,
                       fmt::format("{}, and {} devices take {} cuts one after the other",
                                   words_of_halvings(layer, space), whole.devices, whole.levels),
                       allows(space, layer, Type::batch) ? "use fewer devices or a larger batch" : "use fewer devices");
  return std::nullopt;
}

std::uint32_t whole_of(const Bisection& devices) { return static_cast<std::uint32_t>(devices.parts.size() - 1); }

}  // namespace

Options Options::accpar() { return {}; }

Options Options::hypar() {
  Options options;
  options.space = Space::batch_or_reduction;
  options.objective = Objective::volume;
  options.ratio = Ratio::equal;
  options.along_spine = true;
  return options;
}

Options Options::one_weird_trick() {
  Options options;
  options.space = Space::one_weird_trick;
  options.ratio = Ratio::equal;
  return options;
}

Options Options::data_parallel() {
  Options options;
  options.space = Space::batch;
  options.ratio = Ratio::equal;
  return options;
}

Expected<Assignment> search(const LayerGraph& graph, const Bisection& devices, const Options& options,
                            const RunContext& context) {
  if (const auto valid = validate(graph); !valid) return valid.error();
  if (devices.parts.empty()) return bad_input("the tree has no devices");
  if (options.first_ratio && !(*options.first_ratio > 0 && *options.first_ratio < 1))
    return usage_error("the ratio of the first cut must lie between 0 and 1");
  if (!(std::isfinite(options.bytes_per_element) && options.bytes_per_element > 0))
    return usage_error("an element must have more than zero bytes");
  TreeSearch tree(devices, options, context);
  const auto first = tree.run(whole_of(devices), options.along_spine ? spine(graph) : graph, true);
  if (!first) {
    const auto named = first.error().code == ErrorCode::infeasible
                           ? layer_without_enough(graph, devices.parts.back(), options.space)
                           : std::nullopt;
    return named ? *named : first.error();
  }
  return std::move(tree.result);
}

AssignmentCost cost_of(const LayerGraph& graph, const Bisection& devices, const Assignment& assignment,
                       Objective objective, double bytes_per_element) {
  Pricing pricing(devices, assignment, objective, bytes_per_element);
  return pricing.of(assignment.cuts.empty() ? kDevice : 0, whole_of(devices), graph);
}

LayerGraph held_by(const LayerGraph& graph, const Bisection& devices, const Assignment& assignment,
                   std::uint32_t place) {
  LayerGraph held = graph;
  std::uint32_t index = assignment.cuts.empty() ? kDevice : 0, part = whole_of(devices);
  while (!devices.parts[part].is_device()) {
    const Cut& cut_here = assignment.cuts[index];
    const std::uint32_t first = devices.parts[devices.parts[part].halves[0]].devices;
    const std::size_t h = place < first ? 0 : 1;
    if (h == 1) place -= first;
    std::vector<double> shares = cut_here.shares;
    if (h == 1)
      for (double& share : shares) share = 1 - share;
    held = cut(held, cut_here.types, shares);
    index = cut_here.next[h], part = devices.parts[part].halves[h];
  }
  return held;
}

Expected<Best> best_of_all(const LayerGraph& graph, const Bisection& devices, const Options& options,
                           const RunContext& context) {
  const auto as_asked = [&](Options other) {
    other.whole_units = options.whole_units, other.bytes_per_element = options.bytes_per_element;
    if (other.space != Space::batch_or_reduction) other.objective = options.objective;
    return other;
  };
  std::vector<std::pair<std::string_view, Options>> rivals{{"AccPar", options}};
  for (const Ratio ratio : {Ratio::paper, Ratio::equal}) {
    Options other = options;
    other.ratio = ratio;
    const bool free = options.ratio == Ratio::exact && options.objective == Objective::time && !options.first_ratio;
    const bool unlike = std::any_of(devices.parts.begin(), devices.parts.end(),
                                    [](const Part& part) { return !part.is_device() && !part.alike(); });
    if (free && unlike) rivals.push_back({"AccPar", other});
  }
  rivals.push_back({"HyPar", as_asked(Options::hypar())});
  rivals.push_back({"One Weird Trick", as_asked(Options::one_weird_trick())});
  rivals.push_back({"data parallelism", as_asked(Options::data_parallel())});
  Best best;
  for (const auto& [name, rival] : rivals) {
    auto found = search(graph, devices, rival, context);
    if (!found) {
      // The others may lack a type for some layer; AccPar's own failure is the answer.
      if (best.found_by.empty() || found.error().code == ErrorCode::cancelled) return found.error();
      continue;
    }
    AssignmentCost cost = cost_of(graph, devices, *found, options.objective, options.bytes_per_element);
    if (best.found_by.empty() || cost.total < best.cost.total * (1 - 1e-12))
      best = {std::move(*found), std::move(cost), name};
  }
  return best;
}

}  // namespace turnpoint::accpar
