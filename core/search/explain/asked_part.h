// SPDX-License-Identifier: Apache-2.0
// What a question can be about, as patterns of rules name it (force_words.h), and questions as commands of a terminal.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/result.h"
#include "core/search/explain/force_words.h"

namespace turnpoint {

struct AskedPart {
  std::string pattern;
  std::vector<OperatorId> operators;  ///< all that the pattern names
};
AskedPart asked_operator(const Model& model, OperatorId op);
/// All of its layer: "layer7/*". None where it is alone there, or where no pattern names that layer and nothing else.
std::optional<AskedPart> asked_layer(const Model& model, OperatorId op);
/// The same operator of every layer: "layer*/mlp/fc1". None where there is one such layer.
std::optional<AskedPart> asked_in_every_layer(const Model& model, OperatorId op);
AskedPart asked_whole(const Model& model);

/// As --force takes them: "layer7/*: tp=4, *: recompute".
std::string to_string(const std::vector<ForceRule>& rules);

/// The command that searches the result again and writes it to `file`, quoted for a shell.
std::string search_command(const Result& result, const std::string& file);
/// The command that says of that file's point what there is to say; with what is given in the place of `more`:
/// "--force 'RULES'", "--against 3".
std::string explain_command(std::size_t point, const std::string& file, const std::string& more);
/// A point's plan run under an engine, as `validate` takes it; what is empty is left out.
struct EngineQuestion {
  std::string_view engine = {};  ///< its key
  std::string launcher = {}, model_code = {};
  bool prove = true;
  double budget_s = 60;
};
/// The command that runs that file's point so, and writes its report to report.json.
std::string validate_command(std::size_t point, const std::string& file, const EngineQuestion& question);
/// For a shell: 'it'\''s'; as it is where no shell could take it for anything else.
std::string shell_quoted(const std::string& text);

}  // namespace turnpoint
