// SPDX-License-Identifier: Apache-2.0
// What exchanges between GPUs bring, number by number: processes with an emulated GPU each, in every kind of group.
#include <sys/wait.h>
#include <unistd.h>
#include <QTest>

#include "gpu_probe/emulated_gpu/load.h"
#include "gpu_probe/host_ranks.h"
#include "gpu_probe/ranks/host_team.h"
#include "gpu_probe/transport/gpu_collectives.h"

using namespace turnpoint;
using namespace turnpoint::probe;

namespace {

/// Of rank `rank`, element `i`: whole numbers, so that sums are exact in any order.
float number(int rank, std::int64_t i) { return static_cast<float>((rank + 1) * 1000 + i % 97); }

/// One process with its GPU. Every check returns what is wrong.
class OneGpu {
 public:
  OneGpu(Communicator& control, Transport& transport) : control_(control), transport_(transport) {}

  std::string open(int device) {
    if (const auto why = test::load_emulated_gpu(); !why.empty()) return why;
    if (!dlopen(TURNPOINT_EMULATED_NCCL_DIR "/libnccl.so.2", RTLD_NOW | RTLD_GLOBAL)) return dlerror();
    gpu_ = std::make_unique<cuda::Gpu>();
    if (auto opened = gpu_->open(device, "", false); !opened) return opened.error().what;
    auto made = GpuCollectives::open(*gpu_, control_, transport_);
    if (!made) return made.error().what;
    exchanges_ = std::move(*made);
    const auto lined_up = exchanges_->line_up();
    return lined_up ? std::string() : lined_up.error().what;
  }

  std::string every_kind(const Group& group, std::int64_t count) {
    const auto members = static_cast<std::int64_t>(group.size());
    const auto me = std::find(group.begin(), group.end(), control_.rank()) - group.begin();
    const auto sum = [&](std::int64_t i) {
      float total = 0;
      for (const int rank : group) total += number(rank, i);
      return total;
    };
    std::string wrong;
    const auto check = [&](const char* what, std::int64_t out_count, const auto& run, const auto& wanted) {
      if (!wrong.empty()) return;
      cuda::DeviceMemory memory(*gpu_);
      std::vector<float> in(static_cast<std::size_t>(count * members)), out(in.size(), -1.0f);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = number(control_.rank(), static_cast<std::int64_t>(i));
      const auto a = memory.raw(in.size() * 4), b = memory.raw(in.size() * 4);
      gpu_->driver.copy_to_device(*a, in.data(), in.size() * 4, gpu_->stream);
      gpu_->driver.copy_to_device(*b, in.data(), in.size() * 4, gpu_->stream);
      if (const Expected<void> done = run(*a, *b); !done) {
        wrong = std::string(what) + ": " + done.error().what;
        return;
      }
      gpu_->driver.copy_to_host(out.data(), *b, static_cast<std::size_t>(out_count) * 4, gpu_->stream);
      if (const auto done = gpu_->wait("testing"); !done) wrong = done.error().what;
      for (std::int64_t i = 0; i < out_count && wrong.empty(); ++i)
        if (out[static_cast<std::size_t>(i)] != wanted(i))
          wrong = std::string(what) + ": element " + std::to_string(i) + " is " +
                  std::to_string(out[static_cast<std::size_t>(i)]) + " instead of " + std::to_string(wanted(i));
    };
    using cuda::Pointer;
    const auto at = [](Pointer of, std::int64_t i) { return of + 4 * static_cast<Pointer>(i); };
    check(
        "all-reduce", count, [&](Pointer a, Pointer b) { return exchanges_->all_reduce(group, a, b, count); }, sum);
    check(
        "all-reduce in place", count, [&](Pointer, Pointer b) { return exchanges_->all_reduce(group, b, b, count); },
        sum);
    check(
        "all-gather", count * members, [&](Pointer a, Pointer b) { return exchanges_->all_gather(group, a, b, count); },
        [&](std::int64_t i) { return number(group[static_cast<std::size_t>(i / count)], i % count); });
    check(
        "all-gather in place", count * members,
        [&](Pointer, Pointer b) { return exchanges_->all_gather(group, at(b, me * count), b, count); },
        [&](std::int64_t i) { return number(group[static_cast<std::size_t>(i / count)], i); });
    check(
        "reduce-scatter", count, [&](Pointer a, Pointer b) { return exchanges_->reduce_scatter(group, a, b, count); },
        [&](std::int64_t i) { return sum(me * count + i); });
    check(
        "broadcast", count, [&](Pointer, Pointer b) { return exchanges_->broadcast(group, b, count, group.back()); },
        [&](std::int64_t i) { return number(group.back(), i); });
    check(
        "all-to-all", count * members,
        [&](Pointer a, Pointer b) {
          std::vector<GpuPart> parts;
          for (std::int64_t m = 0; m < members; ++m)
            if (m != me)
              parts.push_back({group[static_cast<std::size_t>(m)], at(a, m * count), count, at(b, m * count), count});
          return exchanges_->exchange(parts);
        },
        [&](std::int64_t i) {
          const std::int64_t from = i / count;
          return number(group[static_cast<std::size_t>(from)], from == me ? i : me * count + i % count);
        });
    check(
        "ring", count,
        [&](Pointer a, Pointer b) {
          const GpuPart parts[] = {{group[static_cast<std::size_t>((me + 1) % members)], a, count, 0, 0},
                                   {group[static_cast<std::size_t>((me + members - 1) % members)], 0, 0, b, count}};
          return exchanges_->exchange(parts);
        },
        [&](std::int64_t i) { return number(group[static_cast<std::size_t>((me + members - 1) % members)], i); });
    return wrong;
  }

  GpuCollectives& exchanges() { return *exchanges_; }
  cuda::Gpu& gpu() { return *gpu_; }

 private:
  Communicator& control_;
  Transport& transport_;
  std::unique_ptr<cuda::Gpu> gpu_;  ///< looks for its libraries when it is made
  std::unique_ptr<GpuCollectives> exchanges_;
};

}  // namespace

class GpuCollectivesTest : public QObject {
  Q_OBJECT

  /// Runs `body` on ranks that are processes; how many were not satisfied.
  int run(std::vector<int> nodes, const std::function<std::string(OneGpu&, Communicator&)>& body, int gpus = 4) {
    test::HostRanks ranks(std::move(nodes));
    std::vector<pid_t> children;
    for (int rank = 0; rank < ranks.ranks(); ++rank) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);  // whoever waits for ever is ended
        std::string wrong = "not connected";
        if (auto me = ranks.open(rank)) {
          OneGpu gpu(*me->collectives, *me->transport);
          wrong = gpu.open(rank % gpus);
          if (wrong.empty())
            wrong = body(gpu, *me->collectives);
          else if (gpus < ranks.ranks() && wrong.find("joining GPUs by NCCL: NCCL error 5") == 0)
            wrong.clear();
        }
        if (!wrong.empty()) std::fprintf(stderr, "rank %d: %s\n", rank, wrong.c_str());
        _exit(wrong.empty() ? 0 : 1);
      }
      children.push_back(child);
    }
    int failed = 0;
    for (const pid_t child : children) {
      int status = 0;
      if (waitpid(child, &status, 0) != child || status != 0) ++failed;
    }
    return failed;
  }

 private slots:
  void initTestCase() {
    if (const auto why = test::no_emulated_gpu(); !why.empty()) QSKIP(why.c_str());
    qputenv("TURNPOINT_EMULATED_GPUS", "4");
  }

  void numbers_arrive_data() {
    QTest::addColumn<std::vector<int>>("nodes");
    QTest::newRow("two ranks") << std::vector{0, 0};
    QTest::newRow("three ranks") << std::vector{0, 0, 0};
    QTest::newRow("four ranks") << std::vector{0, 0, 0, 0};
    QTest::newRow("four ranks on two hosts") << std::vector{0, 0, 1, 1};
  }
  void numbers_arrive() {
    QFETCH(std::vector<int>, nodes);
    const int ranks = static_cast<int>(nodes.size());
    const int failed = run(nodes, [ranks](OneGpu& gpu, Communicator& control) {
      std::string wrong;
      for (const std::int64_t count : {1, 7, 4096, 100'003})
        for (int size = 2; size <= ranks; ++size)
          for (int stride = 1; stride * size <= ranks && wrong.empty(); ++stride)
            if (ranks % (size * stride) == 0)
              wrong = gpu.every_kind(strided_group(control.rank(), size, stride), count);
      return wrong;
    });
    QCOMPARE(failed, 0);
  }

  /// Members that call different collectives: an asynchronous error instead of waiting for ever, on all ranks.
  void what_does_not_fit_is_noticed() {
    const int failed = run({0, 0}, [](OneGpu& gpu, Communicator& control) -> std::string {
      cuda::DeviceMemory memory(gpu.gpu());
      const auto a = memory.raw(4096), b = memory.raw(4096);
      const std::int64_t count = control.rank() == 0 ? 100 : 101;
      const auto queued = gpu.exchanges().all_reduce(control.all(), *a, *b, count);
      if (!queued) return "refused at once";
      const auto done = gpu.gpu().wait("testing");
      if (done) return "went on";
      const std::string what = done.error().what;
      if (what != kAnotherRankGaveUp && what.find("NCCL error") == std::string::npos) return what;
      // Nothing works afterwards, and nothing waits.
      return gpu.exchanges().line_up() ? "works again" : "";
    });
    QCOMPARE(failed, 0);
  }

  void two_ranks_on_one_gpu_are_refused() {
    const auto never = [](OneGpu&, Communicator&) -> std::string { return "joined"; };
    QCOMPARE(run({0, 0}, never, 1), 0);
  }

  /// A rank that gives up is noticed by those who wait for its GPU.
  void a_rank_that_gives_up_wakes_the_others() {
    const int failed = run({0, 0, 0}, [](OneGpu& gpu, Communicator& control) -> std::string {
      if (control.rank() == 2) {
        usleep(100'000);
        gpu.exchanges().abort();
        return "";
      }
      if (const auto queued = gpu.exchanges().line_up(); !queued) return queued.error().what;
      const auto done = gpu.gpu().wait("testing");
      return done ? "went on" : done.error().what == kAnotherRankGaveUp ? "" : done.error().what;
    });
    QCOMPARE(failed, 0);
  }
};

QTEST_APPLESS_MAIN(GpuCollectivesTest)
#include "gpu_collectives_test.moc"
