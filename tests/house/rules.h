// SPDX-License-Identifier: Apache-2.0
// The rules of the house as functions over a source tree: each returns what breaks it, by file and line. They take the
// tree's root, so that the tests can also run them on a tree made to break every rule.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace turnpoint::house {

namespace fs = std::filesystem;

struct Violation {
  std::string file;  ///< relative to the root
  int line = 0;      ///< 0: the file as a whole
  std::string what;
  std::string text() const { return file + ":" + std::to_string(line) + ": " + what; }
};

struct SourceFile {
  std::string name;  ///< relative to the root, with '/'
  std::vector<std::string> lines;
};

inline bool ends_with_any(const std::string& name, const std::vector<std::string>& endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const std::string& e) { return name.ends_with(e); });
}

inline std::vector<std::string> read_lines(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Folders of the repository that hold sources.
inline const std::vector<std::string> kFolders = {"app",       "core",  "views",     "gpu_probe",
                                                  "resources", "tests", "packaging", ".ci"};

/// Files under the named folders (and, with `top`, beside them) whose names end in one of `endings`, sorted by name.
inline std::vector<SourceFile> read_tree(const fs::path& root, const std::vector<std::string>& folders,
                                         const std::vector<std::string>& endings, bool top = false) {
  std::vector<SourceFile> files;
  const auto add = [&](const fs::path& path) {
    const std::string name = path.lexically_relative(root).generic_string();
    if (ends_with_any(name, endings)) files.push_back({name, read_lines(path)});
  };
  for (const auto& folder : folders) {
    if (!fs::is_directory(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.is_regular_file()) add(entry.path());
  }
  if (top)
    for (const auto& entry : fs::directory_iterator(root))
      if (entry.is_regular_file()) add(entry.path());
  std::sort(files.begin(), files.end(), [](const SourceFile& a, const SourceFile& b) { return a.name < b.name; });
  return files;
}

inline const std::vector<std::string> kCppEndings = {".h", ".cpp", ".cu", ".cuh"};

/// The code of each line without comments; the contents of string literals stay. Raw strings are taken as code.
inline std::vector<std::string> without_comments(const std::vector<std::string>& lines) {
  std::vector<std::string> result;
  bool in_block = false;
  for (const auto& line : lines) {
    std::string code;
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      const char next = i + 1 < line.size() ? line[i + 1] : 0;
      if (in_block) {
        if (c == '*' && next == '/') in_block = false, ++i;
        continue;
      }
      if (quote) {
        code += c;
        if (c == '\\' && next)
          code += line[++i];
        else if (c == quote)
          quote = 0;
        continue;
      }
      if (c == '/' && next == '/') break;
      if (c == '/' && next == '*') {
        in_block = true, ++i;
        continue;
      }
      // A quote between digits or letters separates digits: 1'000.
      if (c == '"' || (c == '\'' && !(i && std::isalnum(static_cast<unsigned char>(line[i - 1]))))) quote = c;
      code += c;
    }
    result.push_back(code);
  }
  return result;
}

struct Include {
  int line = 0;
  std::string path;
  bool quoted = false;
};

inline std::vector<Include> includes_of(const SourceFile& file) {
  static const std::regex pattern(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::vector<Include> found;
  const auto code = without_comments(file.lines);
  for (std::size_t i = 0; i < code.size(); ++i) {
    std::smatch match;
    if (std::regex_search(code[i], match, pattern))
      found.push_back({static_cast<int>(i) + 1, match[2].str(), match[1].str() == "\""});
  }
  return found;
}

/// The module a path belongs to: "core/frontier", "views", "views/graph_layout", "app", "app/cli", "gpu_probe".
inline std::string module_of(const std::string& path) {
  const auto below = [&](const std::string& folder) { return path.starts_with(folder + "/"); };
  if (below("core")) {
    const auto slash = path.find('/', 5);
    return slash == std::string::npos ? "core" : path.substr(0, slash);
  }
  for (const char* folder : {"views/graph_layout", "app/cli", "app", "views", "gpu_probe", "tests"})
    if (below(folder)) return folder;
  return {};
}

/// Which modules each module may include besides itself: downwards only.
inline const std::map<std::string, std::set<std::string>>& allowed_includes() {
  static const auto table = [] {
    std::map<std::string, std::set<std::string>> t;
    t["core/base"] = {};
    t["core/model"] = {"core/base"};
    t["core/hardware"] = {"core/base", "core/model"};
    t["core/import"] = {"core/base", "core/model", "core/hardware"};
    t["core/scenario"] = {"core/base", "core/model", "core/hardware"};
    t["core/cost"] = {"core/base", "core/model", "core/hardware", "core/scenario"};
    t["core/simulation"] = t["core/cost"];
    t["core/frontier"] = {"core/base"};
    const auto above = [&](const char* module, const std::set<std::string>& more) {
      t[module] = t["core/cost"];
      t[module].insert("core/cost");
      t[module].insert(more.begin(), more.end());
    };
    above("core/plan", {"core/frontier"});
    above("core/plan_io", {"core/plan"});
    above("core/schedule", {"core/plan", "core/simulation"});
    above("core/probe", {"core/plan"});
    above("core/export", {"core/plan", "core/plan_io", "core/schedule", "core/simulation"});
    above("core/search", {"core/frontier", "core/plan", "core/plan_io", "core/schedule", "core/simulation"});
    above("core/validation", {"core/plan", "core/plan_io", "core/probe", "core/schedule", "core/simulation"});
    std::set<std::string> whole_core;
    for (const auto& [name, unused] : t) whole_core.insert(name);
    t["views"] = whole_core;
    t["views"].insert("views/graph_layout");
    t["views/graph_layout"] = {};
    t["app/cli"] = whole_core;
    t["app"] = whole_core;
    t["app"].insert("views");
    t["gpu_probe"] = {"core/base", "core/model", "core/hardware"};
    return t;
  }();
  return table;
}

inline bool is_qt(const std::string& path) {
  static const std::regex pattern(R"(^(Q[A-Z]\w*|Qt[A-Z]\w*/.*|q[a-z]+\.h)$)");
  return std::regex_match(path, pattern) || path == "qcustomplot.h";
}

/// Include directions and which libraries may be seen where.
inline std::vector<Violation> check_includes(const fs::path& root) {
  const auto files = read_tree(root, {"app", "core", "views", "gpu_probe"}, kCppEndings);
  // Reading qcustomplot.h takes the compiler seconds: a header that needs it is for the sources of its own folder.
  std::set<std::string> plot_headers;
  for (const auto& file : files)
    for (const auto& include : includes_of(file))
      if (include.path == "qcustomplot.h" && file.name.ends_with(".h")) plot_headers.insert(file.name);
  const auto folder_of = [](const std::string& name) { return name.substr(0, name.rfind('/')); };

  std::vector<Violation> found;
  for (const auto& file : files) {
    const std::string module = module_of(file.name);
    const auto rule = allowed_includes().find(module);
    if (rule == allowed_includes().end()) {
      found.push_back({file.name, 0, "belongs to no module of the include table"});
      continue;
    }
    const bool qt_allowed = module == "views" || module == "app";
    for (const auto& include : includes_of(file)) {
      const auto broken = [&](const std::string& what) { found.push_back({file.name, include.line, what}); };
      const bool header = file.name.ends_with(".h");
      if (!include.quoted) {
        if (is_qt(include.path) && !qt_allowed) broken(module + " must not include Qt: <" + include.path + ">");
        if (header && include.path == "nlohmann/json.hpp") broken("headers include nlohmann/json_fwd.hpp only");
        const bool graphviz =
            include.path == "gvc.h" || include.path == "cgraph.h" || include.path.starts_with("graphviz/");
        if (graphviz && module != "views/graph_layout") broken("Graphviz belongs to views/graph_layout alone");
        continue;
      }
      if (include.path.ends_with(".moc")) continue;
      const std::string target = module_of(include.path);
      if (target.empty() || !fs::is_regular_file(root / include.path)) {
        broken("is not a path from the repository root: \"" + include.path + "\"");
        continue;
      }
      if (plot_headers.contains(include.path) && folder_of(include.path) != folder_of(file.name))
        broken("brings qcustomplot.h into another folder: \"" + include.path + "\"");
      // Two doors: the probe reads plans and jobs that hold one; search/ itself (no method below it) opens models to
      // find a result's plans again.
      const bool door =
          (module == "gpu_probe" &&
           (include.path == "core/plan/plan.h" || include.path == "core/probe/step_job.h" ||
            include.path == "core/probe/step_placement.h" || include.path == "core/probe/step_ratio.h")) ||
          (target == "core/import" && file.name.starts_with("core/search/") &&
           file.name.find('/', 12) == std::string::npos);
      if (target != module && !rule->second.contains(target) && !door)
        broken(module + " must not include " + target + ": \"" + include.path + "\"");
    }
  }
  return found;
}

/// Folders include each other one way only, inside modules too: a search method its registry no more than a device of
/// the probe its ranks. Each circle is told once, by its folders and one include that closes it.
inline std::vector<Violation> check_folder_circles(const fs::path& root) {
  struct Arrow {
    std::string file, path;
    int line = 0;
  };
  std::map<std::string, std::map<std::string, Arrow>> arrows;
  const auto folder_of = [](const std::string& name) { return name.substr(0, name.rfind('/')); };
  for (const auto& file : read_tree(root, {"app", "core", "views", "gpu_probe"}, kCppEndings))
    for (const auto& include : includes_of(file))
      if (const std::string to = folder_of(include.path);
          include.quoted && to != folder_of(file.name) && fs::is_regular_file(root / include.path))
        arrows[folder_of(file.name)].try_emplace(to, Arrow{file.name, include.path, include.line});
  std::vector<Violation> found;
  std::vector<std::string> way;
  std::set<std::string> left;
  const std::function<void(const std::string&)> walk = [&](const std::string& folder) {
    way.push_back(folder);
    for (const auto& [to, arrow] : arrows[folder]) {
      const auto first = std::find(way.begin(), way.end(), to);
      if (first != way.end()) {
        std::string circle;
        for (auto it = first; it != way.end(); ++it) circle += *it + " -> ";
        found.push_back({arrow.file, arrow.line, "closes a circle of folders: " + circle + to});
      } else if (!left.contains(to)) {
        walk(to);
      }
    }
    way.pop_back();
    left.insert(folder);
  };
  std::vector<std::string> folders;
  for (const auto& [folder, unused] : arrows) folders.push_back(folder);
  for (const auto& folder : folders)
    if (!left.contains(folder)) walk(folder);
  return found;
}

/// core/ prints nothing and ends nothing.
inline std::vector<Violation> check_core_is_silent(const fs::path& root) {
  static const std::regex pattern(
      R"(\bstd::(cout|cerr|clog)\b|\bfmt::print\b|\b(printf|puts|exit|_exit|quick_exit|abort)\s*\()");
  std::vector<Violation> found;
  for (const auto& file : read_tree(root, {"core"}, kCppEndings)) {
    const auto code = without_comments(file.lines);
    for (std::size_t i = 0; i < code.size(); ++i) {
      std::smatch match;
      if (std::regex_search(code[i], match, pattern))
        found.push_back({file.name, static_cast<int>(i) + 1, "core neither prints nor exits: " + match.str()});
    }
  }
  return found;
}

/// First line of every source, first or second line of every script.
inline std::vector<Violation> check_licence_lines(const fs::path& root) {
  std::vector<Violation> found;
  const std::string identifier = "SPDX-License-Identifier: Apache-2.0";
  for (const auto& file : read_tree(root, kFolders, kCppEndings))
    if (file.lines.empty() || file.lines[0] != "// " + identifier)
      found.push_back({file.name, 1, "does not begin with the SPDX line"});
  for (const auto& file : read_tree(root, {"packaging", ".ci"}, {""})) {
    const bool script = !file.lines.empty() && file.lines[0].starts_with("#!");
    if (script && (file.lines.size() < 2 || file.lines[1] != "# " + identifier))
      found.push_back({file.name, 2, "has no SPDX line after its interpreter line"});
  }
  return found;
}

/// Sources of core/ are ASCII outside comments; other characters are written as escapes.
inline std::vector<Violation> check_ascii(const fs::path& root) {
  std::vector<Violation> found;
  for (const auto& file : read_tree(root, {"core"}, kCppEndings)) {
    const auto code = without_comments(file.lines);
    for (std::size_t i = 0; i < code.size(); ++i)
      if (std::any_of(code[i].begin(), code[i].end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
        found.push_back({file.name, static_cast<int>(i) + 1, "is not ASCII outside a comment"});
  }
  return found;
}

inline constexpr std::size_t kLongestFile = 500;

inline std::vector<Violation> check_lengths(const fs::path& root) {
  std::vector<Violation> found;
  for (const auto& file : read_tree(root, kFolders, kCppEndings))
    if (file.lines.size() > kLongestFile)
      found.push_back({file.name, static_cast<int>(file.lines.size()),
                       "is longer than " + std::to_string(kLongestFile) + " lines"});
  return found;
}

/// No notes about unfinished work, and no paths of the machine it was written on. The words are pieced together here so
/// that this file does not break its own rule.
inline std::vector<Violation> check_no_leftovers(const fs::path& root) {
  const std::vector<std::pair<std::regex, std::string>> patterns = {
      {std::regex(std::string(R"(\b(TO)") + R"(DO|FIX)" + R"(ME|XX)" + R"(X)\b)"), "names unfinished work"},
      {std::regex(std::string(R"((^|[\s"'=(])/(wo)") + R"(rk|ho)" + R"(me)/)"), "names a folder of one machine"}};
  std::vector<Violation> found;
  const std::vector<std::string> endings = {
      ".h",  ".cpp",    ".cu",  ".cuh",     ".txt",  ".json", ".md", ".cmake", "packaging/start", "packaging/check",
      ".sh", ".ci/run", ".xml", ".desktop", "NOTICE"};
  for (const auto& file : read_tree(root, kFolders, endings, true)) {
    if (file.name.starts_with("tests/data/")) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      for (const auto& [pattern, what] : patterns)
        if (std::regex_search(file.lines[i], pattern)) found.push_back({file.name, static_cast<int>(i) + 1, what});
  }
  return found;
}

/// Tests send signals through send_signal.h, which cannot reach their own process group. Signal 0 only asks.
inline std::vector<Violation> check_signals(const fs::path& root) {
  const std::regex sends(R"((^|[^.>\w])kill\(.*, *(SIG|signal))");
  std::vector<Violation> found;
  for (const auto& file : read_tree(root, {"tests"}, kCppEndings)) {
    if (file.name == "tests/send_signal.h") continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      if (std::regex_search(file.lines[i], sends))
        found.push_back({file.name, static_cast<int>(i) + 1, "sends a signal without send_signal.h"});
  }
  return found;
}

/// Exactly these at the top, besides dot-files and what .gitignore names.
inline std::vector<Violation> check_top_level(const fs::path& root) {
  const std::set<std::string> wanted = {"CMakeLists.txt", "CMakePresets.json",
                                        "README.md",      "ARCHITECTURE.md",
                                        "CHANGELOG.md",   "LICENSE",
                                        "NOTICE",         "app",
                                        "core",           "views",
                                        "gpu_probe",      "resources",
                                        "tests",          "packaging"};
  const std::set<std::string> ignored = {"build", "CMakeUserPresets.json"};
  std::vector<Violation> found;
  std::set<std::string> seen;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    seen.insert(name);
    if (!name.starts_with(".") && !wanted.contains(name) && !ignored.contains(name) && !name.ends_with(".user"))
      found.push_back({name, 0, "does not belong at the top level"});
  }
  for (const auto& name : wanted)
    if (!seen.contains(name)) found.push_back({name, 0, "is missing at the top level"});
  std::sort(found.begin(), found.end(), [](const Violation& a, const Violation& b) { return a.file < b.file; });
  return found;
}

/// Relative links and pictures of the documents lead to files that exist.
inline std::vector<Violation> check_links(const fs::path& root) {
  static const std::regex pattern(R"(\]\(([^)#\s]+)(#[^)]*)?\))");
  std::vector<Violation> found;
  for (const auto& file : read_tree(root, {"resources"}, {".md"}, true)) {
    const fs::path folder = (root / file.name).parent_path();
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      for (std::sregex_iterator it(line.begin(), line.end(), pattern), end; it != end; ++it) {
        const std::string target = (*it)[1].str();
        if (target.find("://") == std::string::npos && !fs::exists(folder / target))
          found.push_back({file.name, static_cast<int>(i) + 1, "links to a file that does not exist: " + target});
      }
    }
  }
  return found;
}

/// What code cites of the manual ("simulator.md, rule 4") is there: the page, and a section, rule or case so numbered.
inline std::vector<Violation> check_citations(const fs::path& root) {
  static const std::regex pattern(R"(resources/manual/([a-z-]+\.md)(, (?:rule )?([A-Z]?[0-9]+(\.[0-9]+)?))?)");
  std::map<std::string, std::vector<std::string>> pages;
  std::vector<Violation> found;
  for (const auto& file : read_tree(root, {"app", "core", "views", "gpu_probe", "tests"}, kCppEndings)) {
    if (file.name.starts_with("tests/house/")) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      for (std::sregex_iterator it(line.begin(), line.end(), pattern), end; it != end; ++it) {
        const std::string page = (*it)[1].str(), number = (*it)[3].str();
        const auto broken = [&](const std::string& what) {
          found.push_back({file.name, static_cast<int>(i) + 1, what});
        };
        const fs::path path = root / "resources/manual" / page;
        if (!fs::is_regular_file(path)) {
          broken("cites a page that does not exist: " + page);
          continue;
        }
        if (number.empty()) continue;
        auto& lines = pages[page];
        if (lines.empty()) lines = read_lines(path);
        const std::string heads[] = {"## " + number + ". ", "### " + number + " ", "## Rule " + number + ":",
                                     "- **" + number + "**"};
        const bool there = std::any_of(lines.begin(), lines.end(), [&](const std::string& text) {
          return std::any_of(std::begin(heads), std::end(heads),
                             [&](const std::string& head) { return text.starts_with(head); });
        });
        if (!there) broken("cites " + page + ", " + number + ", which is not there");
      }
    }
  }
  return found;
}

}  // namespace turnpoint::house
