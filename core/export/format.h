// SPDX-License-Identifier: Apache-2.0
// What can be written for other programs and people, one record a format. The command line's --to with its help, its
// refusals and its manual page, and the window's menu, file dialogs and reasons why an entry is grey all follow from
// these records. A new format is one source beside this one that makes its record, and its name in formats.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/file_writer.h"
#include "core/plan/result.h"
#include "core/plan_io/plan_read.h"

namespace turnpoint {

/// What a program that trains is told of a plan.
struct EngineFile {
  std::string text;                    ///< as the file holds it
  std::vector<std::string> otherwise;  ///< what the program does otherwise than the plan, each without full stop
  std::string start;                   ///< a command that starts it on a node; words in capitals stand for your own
};

struct ExportFormat {
  std::string_view key;      ///< what --to takes; unique
  std::string_view subject;  ///< what of it is written, as a menu begins: "Plan", "Schedule"
  std::string_view name;     ///< the format, within a sentence: "JSON"
  std::string_view file;     ///< what a file is called unless the user says otherwise; ends in the format's suffix
  std::string_view text;     ///< what is in it or what it is for, without full stop

  // A writer for everything that the format is for, null for what it refuses. Texts, as files hold them.
  std::function<Expected<std::string>(const Scenario&, const Plan&)> plan = nullptr;
  bool pipelines = true;  ///< plans that are pipelines, too; without meaning where plans are refused
  std::function<Expected<std::string>(const Scenario&, const RatioPlan&)> ratio = nullptr;
  std::function<Expected<std::string>(const Scenario&, const PlacementPlan&)> placement = nullptr;
  std::function<Expected<std::string>(const Result&)> points = nullptr;  ///< of one result; its scenario may be null
  /// Of the results of all methods, at least one; piece by piece, since they are large.
  std::function<Expected<void>(const std::vector<ResultPtr>&, const TextSink&)> results = nullptr;

  /// What the file cannot say of a plan that it is written for, a sentence each without full stop.
  std::function<std::vector<std::string>(const Scenario&, const Plan&)> remarks = nullptr;
  /// For a program that trains; `plan` writes the text of it. Usage errors: the operator and the reason why it cannot
  /// run the plan.
  std::function<Expected<EngineFile>(const Scenario&, const Plan&)> engine = nullptr;

  // What can be done with a plan of a result file whose model or hardware is gone. Neither: it needs both.
  std::function<std::string(const nlohmann::json&)> held = nullptr;             ///< the plan of any kind, as it is held
  std::function<Expected<std::string>(const PlanAlone&)> plan_alone = nullptr;  ///< error: what else it needs, in words

  std::string title() const;        ///< "Plan as JSON"
  std::string_view suffix() const;  ///< "json"
  bool accepts(PlanKind kind) const;
  bool for_plans() const;  ///< of some kind
};

/// A format for a program that trains.
ExportFormat for_engine(ExportFormat format, Expected<EngineFile> (*made)(const Scenario&, const Plan&));

/// All that are built, in the order of menus and lists; the same objects for as long as the program runs.
std::span<const ExportFormat> export_formats();
const ExportFormat* find_format(std::string_view key);  ///< null: none is called so

/// How formats are called in a sentence.
enum class FormatNames : std::uint8_t {
  keys,   ///< as the command line does: "--to svg", "json"
  names,  ///< as people do: "SVG", "JSON"
};
/// "a, b and c".
std::string listed(const std::vector<std::string>& words);
/// Why a plan of this kind, which the format does not accept, is refused: "--to svg is not for placements, which go to
/// json, csv, dot and trace".
std::string refusal_of(const ExportFormat& format, PlanKind kind, FormatNames names);

/// What is at hand to be written.
struct ExportSource {
  std::vector<ResultPtr> results;  ///< of all methods; the first one is that whose points are written
  ResultPtr picked;                ///< the result the plan belongs to
  std::size_t point = 0;           ///< of `picked`
};

/// The file's text. Wrong usage: nothing is there to be written ("no plan is picked"), or a kind of plan that the
/// format refuses; else the writer's errors. `names` as in refusal_of().
Expected<std::string> export_text(const ExportFormat& format, const ExportSource& source,
                                  FormatNames names = FormatNames::names);
/// What an engine is told of the plan that is picked. Wrong usage: as export_text(); also where the format is for none.
Expected<EngineFile> engine_file(const ExportFormat& format, const ExportSource& source);
/// What the file will not say of the plan that is picked (ExportFormat::remarks).
std::vector<std::string> export_remarks(const ExportFormat& format, const ExportSource& source);
/// The same to a file, which appears whole or not at all; bad input where it cannot be written.
Expected<void> export_to_file(const ExportFormat& format, const ExportSource& source,
                              const std::filesystem::path& path);

}  // namespace turnpoint
