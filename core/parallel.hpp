// Threads for kernels: work is cut into fixed tasks, so that results do not depend on how many threads there are.
//
// A Team keeps its threads for the life of a kernel call and can run many short phases, each waiting for the one
// before (a training step has four phases and may last ten microseconds). Tasks are claimed one by one and a phase ends
// when all tasks are done, not when all threads have come: on a busy machine a thread that was put aside is not waited
// for. The calling thread is a member; it alone polls for interruption.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace softwood {

// While it lives, numbers too small for a normal float count as 0 on this thread. A shut gate's reach, its gradient and
// what Adam remembers of it sink below 1e-38 by the thousands, where each operation on them costs a hundred cycles.
class FlushSubnormals {
 public:
  FlushSubnormals() : before_(read()) { write(before_ | kFlush); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;
  ~FlushSubnormals() { write(before_); }

 private:
#if defined(__SSE__)
  static constexpr std::uint64_t kFlush = 0x8040;  // results, and operands
  static std::uint64_t read() { return _mm_getcsr(); }
  static void write(std::uint64_t state) { _mm_setcsr(static_cast<unsigned>(state)); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t kFlush = std::uint64_t{1} << 24;
  static std::uint64_t read() {
    std::uint64_t state;
    asm volatile("mrs %0, fpcr" : "=r"(state));
    return state;
  }
  static void write(std::uint64_t state) { asm volatile("msr fpcr, %0" ::"r"(state)); }
#else
  static constexpr std::uint64_t kFlush = 0;
  static std::uint64_t read() { return 0; }
  static void write(std::uint64_t) {}
#endif
  std::uint64_t before_;
};

// Asked now and then by the calling thread; true means: stop, the user pressed Ctrl-C.
using Poll = std::function<bool()>;

// What a team's members do with numbers too small for a normal float.
enum class Subnormals { kKept, kFlushed };

class Team {
 public:
  explicit Team(int n_threads, Subnormals subnormals = Subnormals::kKept) {
    if (subnormals == Subnormals::kFlushed) flush_.emplace();
    for (int member = 1; member < n_threads; ++member) {
      threads_.emplace_back([this, member] {
        std::optional<FlushSubnormals> flush;
        if (flush_) flush.emplace();
        serve(member);
      });
    }
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    stop_.store(true);
    ticket_.fetch_add(kEpoch);
    ticket_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Runs body(task, member) for every task in [0, n_tasks), and returns when all are done. The caller is member 0.
  template <class Body>
  void run(std::size_t n_tasks, const Body& body) {
    if (threads_.empty() || n_tasks < 2) {
      for (std::size_t task = 0; task < n_tasks; ++task) body(task, 0);
      return;
    }
    body_ = &body;
    call_ = [](const void* any, std::size_t task, int member) { (*static_cast<const Body*>(any))(task, member); };
    n_tasks_ = n_tasks;
    done_.store(0);
    const std::uint64_t epoch = ticket_.load() & ~kTasks;
    ticket_.store(epoch + kEpoch + n_tasks);
    ticket_.notify_all();
    work(0);
    for (int spins = 0; done_.load() != n_tasks; ++spins) relax(spins);
  }

 private:
  // A ticket holds the number of the phase and how many of its tasks are unclaimed. Who counts it down owns a task of
  // that very phase, and the phase cannot end, nor body_ change, before that task is done.
  static constexpr std::uint64_t kEpoch = std::uint64_t{1} << 32, kTasks = kEpoch - 1;

  static void relax(int spins) {
    if (spins > 1000) std::this_thread::yield();
  }

  void work(int member) {
    for (std::uint64_t ticket = ticket_.load(); (ticket & kTasks) != 0;) {
      if (!ticket_.compare_exchange_weak(ticket, ticket - 1)) continue;
      call_(body_, n_tasks_ - (ticket & kTasks), member);
      done_.fetch_add(1);
      ticket = ticket_.load();
    }
  }

  void serve(int member) {
    for (int spins = 0; !stop_.load(); ++spins) {
      const std::uint64_t ticket = ticket_.load();
      if ((ticket & kTasks) != 0) {
        work(member);
        spins = 0;
      } else if (spins > 5000) {
        ticket_.wait(ticket);
      } else {
        relax(spins);
      }
    }
  }

  std::optional<FlushSubnormals> flush_;
  std::vector<std::thread> threads_;
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<std::size_t> done_{0};
  std::atomic<bool> stop_{false};
  const void* body_ = nullptr;
  void (*call_)(const void*, std::size_t, int) = nullptr;
  std::size_t n_tasks_ = 0;
};

}  // namespace softwood
