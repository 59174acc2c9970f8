// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <map>

#include "core/export/jax/annotated.h"
#include "core/export/jax/python.h"

namespace turnpoint::jax {

namespace {

class RuleFinder {
 public:
  RuleFinder(const Annotated& annotated, const Mesh& mesh) : annotated_(annotated), mesh_(mesh) {}

  LogicalRules run() {
    LogicalRules made;
    if (!annotated_.no_roles.empty()) {
      made.none = fmt::format("dimensions have no names that Flax and MaxText know: {}", annotated_.no_roles);
      return made;
    }
    for (const AnnotatedParameter& parameter : annotated_.parameters)
      if (made.none.empty()) made.none = add(parameter.name, "", parameter.logical, parameter.stored());
    for (const AnnotatedTensor& tensor : annotated_.tensors)
      for (const DimensionAxes& layout : tensor.layouts)
        if (made.none.empty()) made.none = add(tensor.name, "activation_", tensor.logical, layout);
    for (const auto& [name, rule] : rules_) made.rules.emplace_back(name, rule.axes);
    return made;
  }

 private:
  struct Rule {
    std::vector<int> axes;
    std::string from;  ///< where it was found
  };

  /// Why no mapping says how this array lies, too; empty: it does.
  std::string add(const std::string& array, const std::string& prefix, const LogicalNames& names,
                  const DimensionAxes& axes) {
    for (std::size_t d = 0; d < names.size(); ++d) {
      if (names[d].empty()) continue;
      const auto [it, first] = rules_.emplace(prefix + names[d], Rule{axes[d], array});
      if (!first && it->second.axes != axes[d])
        return fmt::format("'{}' lies over {} in {} and over {} in {}", it->first, words(it->second.axes),
                           it->second.from, words(axes[d]), array);
    }
    return {};
  }

  std::string words(const std::vector<int>& axes) const {
    std::string text;
    for (const int a : axes) text += (text.empty() ? "" : ", ") + mesh_.axes[static_cast<std::size_t>(a)].name;
    return text.empty() ? "no axis" : text;
  }

  const Annotated& annotated_;
  const Mesh& mesh_;
  std::map<std::string, Rule> rules_;
};

}  // namespace

LogicalRules logical_rules(const Annotated& annotated, const Mesh& mesh) { return RuleFinder(annotated, mesh).run(); }

}  // namespace turnpoint::jax
