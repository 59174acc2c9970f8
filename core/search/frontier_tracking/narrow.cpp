// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/narrow.h"

#include <map>

#include "core/search/frontier_tracking/questions.h"

namespace turnpoint::search {

namespace {

constexpr std::uint32_t kDropped = ~std::uint32_t(0);

/// A list of classes with those configurations only, and which of its layouts are left.
struct NarrowedClasses {
  LayoutClasses classes;
  std::vector<std::uint32_t> layouts;  ///< new index -> old
};

NarrowedClasses narrowed(const LayoutClasses& whole, const std::vector<std::uint32_t>& kept) {
  NarrowedClasses result;
  std::vector<std::uint32_t> fresh(whole.layouts.size(), kDropped);
  for (const std::uint32_t c : kept) {
    const std::uint32_t old = whole.of[c];
    if (fresh[old] == kDropped) {
      fresh[old] = static_cast<std::uint32_t>(result.layouts.size());
      result.layouts.push_back(old);
      result.classes.layouts.push_back(whole.layouts[old]);
      if (!whole.again.empty()) result.classes.again.push_back(whole.again[old]);
    }
    result.classes.of.push_back(fresh[old]);
  }
  return result;
}

template <class Value>
void keep_only(std::vector<Value>& values, const std::vector<std::uint32_t>& indices) {
  if (values.empty()) return;
  std::vector<Value> left;
  for (const std::uint32_t i : indices) left.push_back(std::move(values[i]));
  values = std::move(left);
}

const void* group_key(const Variable& variable) {
  return variable.choices ? static_cast<const void*>(variable.choices.get()) : variable.states.get();
}

class Narrower {
 public:
  Narrower(const Structure& whole, const std::vector<std::vector<std::uint32_t>>& kept)
      : whole_(whole), kept_(kept), result_(std::make_shared<Structure>(whole)) {}

  std::shared_ptr<const Structure> run() {
    for (std::size_t v = 0; v < whole_.variables.size(); ++v) narrow_variable(v);
    result_->turned.clear();
    std::vector<char> done(whole_.tables.size(), 0);
    for (Pair& pair : result_->pairs) {
      const auto &from = classes(pair.from_classes, pair.from), &to = classes(pair.to_classes, pair.to);
      if (!done[pair.table]) {
        PairTable& table = result_->tables[pair.table];
        keep_only(table.from, from.kept);
        keep_only(table.from_again, from.kept);
        keep_only(table.from_configurations, from.kept);
        keep_only(table.to, to.kept);
        keep_only(table.to_again, to.kept);
        done[pair.table] = 1;
      }
      pair.from_classes = from.now;
      pair.to_classes = to.now;
    }
    result_->questions = collect_questions(result_->tables);
    return result_;
  }

 private:
  struct Known {
    const LayoutClasses* now = nullptr;
    std::vector<std::uint32_t> kept;  ///< of the layouts
  };

  void narrow_variable(std::size_t v) {
    Variable& variable = result_->variables[v];
    const void* key = group_key(variable);
    if (variable.choices) {
      auto& made = choices_[key];
      if (!made) made = narrow_choices(*variable.choices, kept_[v]);
      variable.choices = made;
      return;
    }
    auto& made = states_[key];
    if (!made) {
      const LayoutClasses* old = variable.states.get();
      NarrowedClasses left = narrowed(*old, kept_[v]);
      made = std::make_shared<const LayoutClasses>(std::move(left.classes));
      known_[old] = {made.get(), std::move(left.layouts)};
    }
    variable.states = made;
  }

  std::shared_ptr<const OperatorChoices> narrow_choices(const OperatorChoices& old,
                                                        const std::vector<std::uint32_t>& kept) {
    auto made = std::make_shared<OperatorChoices>();
    made->configurations = old.configurations;
    made->again = old.again;
    keep_only(made->configurations, kept);
    keep_only(made->again, kept);
    std::vector<std::vector<std::uint32_t>> inputs, outputs;
    const auto add = [&](const std::vector<LayoutClasses>& from, std::vector<LayoutClasses>& to,
                         std::vector<std::vector<std::uint32_t>>& left) {
      for (const LayoutClasses& one : from) {
        NarrowedClasses narrow = narrowed(one, kept);
        to.push_back(std::move(narrow.classes));
        left.push_back(std::move(narrow.layouts));
      }
    };
    add(old.inputs, made->inputs, inputs);
    add(old.outputs, made->outputs, outputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) known_[&old.inputs[i]] = {&made->inputs[i], std::move(inputs[i])};
    for (std::size_t i = 0; i < outputs.size(); ++i)
      known_[&old.outputs[i]] = {&made->outputs[i], std::move(outputs[i])};
    return made;
  }

  /// The narrowed form of a list of classes that a pair points to: a variable's own, or a tied weight's turned copy.
  const Known& classes(const LayoutClasses* old, std::uint32_t variable) {
    const auto found = known_.find(old);
    if (found != known_.end()) return found->second;
    NarrowedClasses left = narrowed(*old, kept_[variable]);
    result_->turned.push_back(std::make_shared<const LayoutClasses>(std::move(left.classes)));
    return known_[old] = {result_->turned.back().get(), std::move(left.layouts)};
  }

  const Structure& whole_;
  const std::vector<std::vector<std::uint32_t>>& kept_;
  std::shared_ptr<Structure> result_;
  std::map<const void*, std::shared_ptr<const OperatorChoices>> choices_;
  std::map<const void*, std::shared_ptr<const LayoutClasses>> states_;
  std::map<const LayoutClasses*, Known> known_;
};

}  // namespace

WantedStates::WantedStates(const Structure& structure) {
  std::map<const void*, std::uint32_t> groups;
  for (const Variable& variable : structure.variables) {
    const auto [it, fresh] = groups.try_emplace(group_key(variable), static_cast<std::uint32_t>(wanted_.size()));
    if (fresh) wanted_.emplace_back(variable.size(), 0);
    group_of_.push_back(it->second);
  }
}

void WantedStates::note(std::size_t variable, std::uint32_t configuration) {
  char& wanted = wanted_[group_of_[variable]][configuration];
  count_ += !wanted;
  wanted = 1;
}

void WantedStates::add(const frontier::Point& plan) {
  for (std::size_t v = 0; v < group_of_.size(); ++v) note(v, plan.configs[v]);
}

void WantedStates::add(const frontier::Point& plan, const std::vector<std::vector<std::uint32_t>>& kept) {
  for (std::size_t v = 0; v < group_of_.size(); ++v) note(v, kept[v][plan.configs[v]]);
}

std::vector<std::vector<std::uint32_t>> WantedStates::states() const {
  std::vector<std::vector<std::uint32_t>> of_group(wanted_.size()), result;
  for (std::size_t g = 0; g < wanted_.size(); ++g)
    for (std::uint32_t c = 0; c < wanted_[g].size(); ++c)
      if (wanted_[g][c]) of_group[g].push_back(c);
  for (const std::uint32_t g : group_of_) result.push_back(of_group[g]);
  return result;
}

std::shared_ptr<const Structure> narrow_structure(const Structure& structure,
                                                  const std::vector<std::vector<std::uint32_t>>& kept) {
  return Narrower(structure, kept).run();
}

}  // namespace turnpoint::search
