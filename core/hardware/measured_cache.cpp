// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/measured_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/json_fields.h"

namespace turnpoint {

namespace {

constexpr const char* kTimesFormat = "turnpoint/measured-times@1";
constexpr const char* kDateFormat = "%Y-%m-%dT%H:%M:%SZ";
constexpr std::size_t kMostCacheText = 256u << 20, kMostTimes = 200'000;

/// FNV-1a: names a file; the identity inside tells whether it is the right one.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

/// Held while a file is read and replaced, so that of two programs neither loses what the other adds. Without a lock
/// (some network file systems have none) the replacement is still whole.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path) : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ >= 0) flock(file_, LOCK_EX);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    if (file_ >= 0) close(file_);
  }

 private:
  int file_;
};

}  // namespace

std::filesystem::path measured_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && cache[0] == '/') return std::filesystem::path(cache) / "turnpoint" / "measured";
  const char* home = std::getenv("HOME");
  if (home && home[0] == '/') return std::filesystem::path(home) / ".cache" / "turnpoint" / "measured";
  return {};
}

std::string utc_date(double seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, kDateFormat, &utc)};
}

double seconds_of_date(const std::string& date) {
  std::tm utc{};
  const char* end = strptime(date.c_str(), kDateFormat, &utc);
  return end && *end == '\0' ? static_cast<double>(timegm(&utc)) : 0;
}

MeasuredCache::MeasuredCache(const std::filesystem::path& folder, std::string identity)
    : identity_(std::move(identity)) {
  if (folder.empty()) return;
  file_ = folder / fmt::format("{:016x}.json", hash_of(identity_));
  read();
}

void MeasuredCache::read() {
  times_.clear();
  ignored_.clear();
  std::error_code ec;
  if (!std::filesystem::exists(file_, ec)) return;
  const auto ignore = [&](const Error& error) { ignored_ = error.message(), times_.clear(); };
  const auto text = read_file(file_, kMostCacheText);
  if (!text) return ignore(text.error());
  const auto document = parse_json(*text, file_.string());
  if (!document) return ignore(document.error());
  JsonFields root(*document, file_.string());
  if (root.text("format", "") != kTimesFormat) root.fail("format", fmt::format("is not '{}'", kTimesFormat));
  if (!root.error() && root.text("identity") != identity_) root.fail("identity", "is another device's");
  root.each("times", [&](JsonFields& item, std::size_t index) {
    if (index >= kMostTimes) return item.fail("signature", fmt::format("more than {} times", kMostTimes));
    KeptTime kept{item.text("signature"), item.text("date"), item.number("item_s", 0, 1e6), {}};
    JsonFields measured = item.object("measured");
    (void)measured.number("time_s", 1e-12, 1e6);
    if (item.error()) return;
    kept.fields = measured.json().dump();
    times_.insert_or_assign(kept.signature, std::move(kept));
  });
  if (root.error()) ignore(*root.error());
}

const KeptTime* MeasuredCache::find(const std::string& signature) const {
  const auto found = times_.find(signature);
  return found == times_.end() ? nullptr : &found->second;
}

Expected<void> MeasuredCache::keep(const std::vector<KeptTime>& times) {
  if (times.empty()) return {};
  if (file_.empty()) return Error{ErrorCode::device, "there is no home folder to keep them in", {}, {}};
  std::error_code ec;
  std::filesystem::create_directories(file_.parent_path(), ec);
  if (ec) return bad_input("the folder cannot be made: " + ec.message(), file_.parent_path().string());
  const FileLock lock(file_.string() + ".lock");
  const std::string before = ignored_;
  read();
  if (!ignored_.empty()) std::filesystem::rename(file_, file_.string() + ".broken", ec);
  if (ignored_.empty()) ignored_ = before;
  for (const auto& time : times) times_.insert_or_assign(time.signature, time);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [signature, time] : times_)
    list.push_back({{"signature", signature},
                    {"date", time.date},
                    {"item_s", time.item_s},
                    {"measured", nlohmann::ordered_json::parse(time.fields)}});
  const nlohmann::ordered_json root = {{"format", kTimesFormat}, {"identity", identity_}, {"times", std::move(list)}};
  return write_file_atomically(file_, root.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace turnpoint
