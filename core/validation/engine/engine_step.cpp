// SPDX-License-Identifier: Apache-2.0
#include "core/validation/engine/engine_step.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/json_fields.h"
#include "core/base/text.h"
#include "core/plan_io/escape.h"
#include "core/validation/engine/engine_parts.h"

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr double kMostValue = 1e30;                             // of what a process says: more is nonsense
constexpr std::size_t kStartOfMessage = 24, kShownOfLine = 80;  ///< characters of a line
constexpr std::int64_t kMostBytes = std::int64_t(1) << 60;

/// Below which whole numbers of a tensor must lie: the rows of the smallest table, or the classes of the loss, that
/// they choose from; 0: nothing chooses by them.
std::int64_t choices_of(const Model& model, TensorId tensor) {
  std::int64_t choices = 0;
  for (const auto& use : model.uses[tensor]) {
    const Operator& op = model.operators[use.op];
    const auto& first = model.tensors[op.inputs.front().tensor].shape;
    std::int64_t found = 0;
    if (op.kind == OperatorKind::embedding && use.input == 1) found = first.front();
    if ((op.kind == OperatorKind::cross_entropy || op.kind == OperatorKind::loss_statistics) && use.input == 1)
      found = first.back();
    if (op.is_view()) found = choices_of(model, op.outputs.front().tensor);
    if (found > 0) choices = choices == 0 ? found : std::min(choices, found);
  }
  return choices;
}

bool feeds_loss(const Model& model, TensorId tensor) {
  return std::ranges::any_of(model.uses[tensor], [&](const auto& use) {
    const Operator& op = model.operators[use.op];
    const bool loss = op.kind == OperatorKind::cross_entropy || op.kind == OperatorKind::loss_statistics;
    return (loss && use.input == 1) || (op.is_view() && feeds_loss(model, op.outputs.front().tensor));
  });
}

json data_of_step(const Model& model) {
  json data = json::array();
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    if (op.kind != OperatorKind::input) continue;
    for (const Access& access : op.outputs) {
      const Tensor& tensor = model.tensors[access.tensor];
      const std::int64_t choices = choices_of(model, access.tensor);
      data.push_back({{"name", valid_utf8(tensor.name)},
                      {"shape", tensor.shape},
                      {"below", is_floating(tensor.type) ? 0 : std::max<std::int64_t>(2, choices)},
                      {"labels", feeds_loss(model, access.tensor)}});
    }
  }
  return data;
}

std::string whole_path(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).string();
}

/// Where the model comes from that the plan is laid over.
Expected<void> add_model(json& job, const Engine& engine, const Scenario& scenario, const std::string& model_code) {
  const std::string& source = scenario.model->source;
  if (model_code.empty()) {
    if (!made_by_transformers(*scenario.model))
      return Error{ErrorCode::usage,
                   fmt::format("{} needs the model itself, and this plan's is no config.json, of which Transformers "
                               "makes one",
                               engine.name),
                   source, "--model-code FILE.py:FUNCTION names a function that returns your model"};
    job["config"] = whole_path(source);
    job["attention"] = fuses_attention(scenario.settings, *scenario.cluster) ? "sdpa" : "eager";
  } else {
    const auto colon = model_code.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == model_code.size())
      return usage_error(
          fmt::format("--model-code takes a file and a function in it, 'model.py:make', not '{}'", model_code));
    const std::string file = model_code.substr(0, colon);
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) return bad_input("no such file, of --model-code", file);
    job["file"] = whole_path(file);
    job["function"] = model_code.substr(colon + 1);
  }
  const auto has_labels = [](const json& data) { return data["labels"].get<bool>(); };
  if (std::ranges::count_if(job["data"], has_labels) != 1)
    return usage_error(fmt::format("the model has no loss over classes, by which {} could train it", engine.name),
                       source);
  return {};
}

/// Each may go over several lines.
std::vector<std::string> remarks_of(const std::string& program) {
  constexpr std::string_view kNote = "# Note: ";
  std::vector<std::string> remarks;
  bool inside = false;
  for (const std::string_view line : split(program, '\n')) {
    const bool begins = line.starts_with(kNote);
    if (begins)
      remarks.emplace_back(line.substr(kNote.size()));
    else if (inside && line.starts_with("# "))
      remarks.back() += ' ' + std::string(line.substr(2));
    inside = (begins || inside) && line.starts_with("# ") && !line.ends_with('.');
  }
  for (std::string& remark : remarks)
    if (remark.ends_with('.')) remark.pop_back();
  return remarks;
}

std::vector<std::string> notes_of_pytorch(const Scenario& scenario, const Plan& plan) {
  std::vector<std::string> notes;
  if (plan.pipeline && plan.pipeline->recompute)
    notes.emplace_back(
        "PyTorch ends the second run of a layer at the last tensor that backward reads: what the plan sums behind that "
        "is not summed again");
  if (scenario.settings.precision != Precision::fp32)
    notes.emplace_back(
        "PyTorch holds weights and gradients in fp32 and makes 16-bit weights of them as they are read; the plan holds "
        "16-bit weights and counts a copy in fp32 as the optimizer's");
  return notes;
}

std::vector<std::string> notes_of_jax(const Scenario&, const Plan&) {
  return {
      "XLA joins collectives of neighbours, and takes one that backward repeats for the one of forward: there may be "
      "fewer than the plan has",
      "weights and optimizer states of before a step stay until it is over: the program gives none of them away"};
}

}  // namespace

const std::vector<Engine>& engines() {
  static const std::vector<Engine> all = {{.key = "pytorch",
                                           .name = "PyTorch",
                                           .format = "pytorch",
                                           .parts = {pytorch_part},
                                           .notes = notes_of_pytorch,
                                           .takes_model = true},
                                          {.key = "jax",
                                           .name = "JAX",
                                           .format = "jax:explicit",
                                           .parts = {compiled_text_part, jax_part},
                                           .notes = notes_of_jax,
                                           .sees_loss = true,
                                           .one_process = true}};
  return all;
}

bool made_by_transformers(const Model& model) { return model.source.ends_with(".json"); }

const Engine* find_engine(std::string_view key) {
  const auto found = std::ranges::find(engines(), key, &Engine::key);
  return found == engines().end() ? nullptr : &*found;
}

Expected<EngineJob> engine_job_of(const Engine& engine, const Scenario& scenario, const Plan& plan, std::string program,
                                  const std::string& model_code, const StepChoice& choice, int most_cpu_ranks) {
  const Settings& settings = scenario.settings;
  json job = {{"devices", plan.mesh.devices()},
              {"backend", to_string(choice.backend)},
              {"prove", choice.prove},
              {"warm_up", choice.warm_up},
              {"steps", choice.steps},
              {"budget_s", choice.budget_s},
              {"seed", choice.seed},
              {"most_cpu_ranks", most_cpu_ranks},
              {"optimizer", to_string(settings.optimizer)},
              {"data", data_of_step(*scenario.model)}};
  if (engine.takes_model) {
    if (settings.optimizer != Optimizer::adam && settings.optimizer != Optimizer::sgd &&
        settings.optimizer != Optimizer::momentum)
      return usage_error(fmt::format("the optimizer {} is not run under {}: sgd, momentum and adam are",
                                     to_string(settings.optimizer), engine.name));
    if (auto added = add_model(job, engine, scenario, model_code); !added) return added.error();
  } else if (!model_code.empty()) {
    return usage_error(fmt::format("--model-code is not for {}, whose program holds the model", engine.name));
  }
  EngineJob made{&engine, std::move(program), job.dump(1), {}, plan.mesh.devices(), choice.budget_s};
  made.remarks = remarks_of(made.program);
  return made;
}

Expected<void> EngineMessages::take(std::string_view line) {
  // A launcher may put a rank's name before each line.
  const auto begin = line.find("{\"type\"");
  if (begin == std::string_view::npos) return {};
  const json message = json::parse(line.substr(begin), nullptr, false);
  if (!message.is_object()) {
    // Nothing more may come after these: to pass one over would be to wait for the end of the time.
    const std::string_view start = line.substr(begin, kStartOfMessage);
    if (start.find("\"result\"") == std::string_view::npos && start.find("\"error\"") == std::string_view::npos)
      return {};
    return Error{ErrorCode::device,
                 fmt::format("a process of {} printed a line that cannot be read: {}", job_.engine->name,
                             valid_utf8(line.substr(begin, kShownOfLine))),
                 {},
                 {}};
  }
  JsonFields fields(message, std::string(job_.engine->name));
  const std::string type = fields.text("type", std::string());
  if (type == "error") return Error{ErrorCode::device, fields.text("what", std::string("it says no more")), {}, {}};
  if (type == "progress") {
    phase_ = fields.text("phase", std::string());
    fraction_ = fields.number("fraction", -1, 1, -1);
    return {};
  }
  if (type != "result") return {};
  EngineMeasurement m;
  m.engine = fields.text("engine");
  m.backend = fields.text("backend");
  m.device = fields.text("device", std::string());
  m.ranks = static_cast<int>(fields.integer("ranks", 1, 1 << 20));
  m.cores = static_cast<int>(fields.integer("cores", 0, 1 << 20, 0));
  const auto numbers = [&](const char* key, bool may_be_none, double least) {
    std::vector<double> values;
    const auto found = message.find(key);
    if (found == message.end() || !found->is_array() || found->empty()) {
      fields.fail(key, "must be a list of numbers");
      return values;
    }
    for (const json& value : *found)
      if (value.is_number() && value.get<double>() >= least && value.get<double>() <= kMostValue)
        values.push_back(value.get<double>());
      else if (value.is_null() && may_be_none)
        values.push_back(std::nan(""));
      else if (value.is_number())
        fields.fail(key, fmt::format("has {}, which is not from {} to {}", value.dump(), least, kMostValue));
      else
        fields.fail(key, "must be a list of numbers");
    return values;
  };
  m.times_s = numbers("times_s", false, 0);
  m.losses = numbers("losses", true, -kMostValue);
  JsonFields memory = fields.object("memory");
  const auto bytes = [&](const char* key) -> std::optional<std::int64_t> {
    if (!memory.has(key)) return std::nullopt;
    return memory.integer(key, 0, kMostBytes);
  };
  m.parameters = bytes("parameters");
  m.gradients = bytes("gradients");
  m.optimizer = bytes("optimizer");
  m.peak = bytes("peak");
  fields.each("collectives", [&](JsonFields& item, std::size_t) {
    EngineCollective one;
    one.kind = item.text("kind");
    one.count = item.integer("count", 1, kMostBytes);
    one.bytes = item.number("bytes", 0, kMostValue);
    const auto ranks = item.json().find("ranks");
    if (ranks == item.json().end() || !ranks->is_array()) return item.fail("ranks", "must be a list of ranks");
    for (const json& rank : *ranks) {
      if (!rank.is_number_integer() || rank < 0 || rank >= m.ranks)
        return item.fail("ranks", fmt::format("must be a list of ranks, of which there are {}", m.ranks));
      one.ranks.push_back(rank.get<int>());
    }
    m.collectives.push_back(std::move(one));
  });
  if (fields.has("numerics")) {
    JsonFields item = fields.object("numerics");
    // An error that is no number is beyond any tolerance.
    const auto error = [&](const char* key) { return item.number(key, 0, kMostValue, kMostValue); };
    m.numerics = {error("loss_error"), error("gradient_error"), item.text("precision", std::string()),
                  item.text("where", std::string())};
  }
  if (const auto notes = message.find("notes"); notes != message.end() && notes->is_array())
    for (const json& note : *notes)
      if (note.is_string()) m.notes.push_back(note.get<std::string>());
  if (fields.error()) {
    Error error = *fields.error();
    error.code = ErrorCode::device;
    return error;
  }
  measurement_ = std::move(m);
  return {};
}

}  // namespace turnpoint
