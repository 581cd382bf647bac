// Threads for kernels: work is cut into fixed tasks, so that results do not depend on how many threads there are.
//
// A Team keeps its threads for the life of a kernel call and can run many short phases with a barrier between them
// (a training step has four phases and may last ten microseconds). The calling thread is member 0; it alone polls
// for interruption.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace softwood {

// Asked now and then by the calling thread; true means: stop, the user pressed Ctrl-C.
using Poll = std::function<bool()>;

class Team {
 public:
  explicit Team(int n_threads) : size_(n_threads < 1 ? 1 : n_threads) {
    for (int member = 1; member < size_; ++member) threads_.emplace_back([this, member] { serve(member); });
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    stop_.store(true);
    epoch_.fetch_add(1);
    epoch_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  int size() const { return size_; }

  // Runs body(task, member) for every task in [0, n_tasks), and returns when all are done.
  template <class Body>
  void run(std::size_t n_tasks, const Body& body) {
    if (size_ == 1 || n_tasks < 2) {
      for (std::size_t task = 0; task < n_tasks; ++task) body(task, 0);
      return;
    }
    auto loop = [&](int member) {
      for (std::size_t task = next_.fetch_add(1); task < n_tasks; task = next_.fetch_add(1)) body(task, member);
    };
    std::function<void(int)> job = loop;
    job_ = &job;
    next_.store(0);
    pending_.store(size_ - 1);
    epoch_.fetch_add(1);
    epoch_.notify_all();
    loop(0);
    for (int spins = 0; pending_.load() != 0; ++spins) relax(spins);
  }

 private:
  static void relax(int spins) {
    if (spins > 2000) std::this_thread::yield();
  }

  void serve(int member) {
    unsigned seen = 0;
    for (;;) {
      for (int spins = 0; epoch_.load() == seen; ++spins) {
        if (spins > 20000) epoch_.wait(seen);
        relax(spins);
      }
      ++seen;
      if (stop_.load()) return;
      (*job_)(member);
      pending_.fetch_sub(1);
    }
  }

  int size_;
  std::vector<std::thread> threads_;
  std::atomic<unsigned> epoch_{0};
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> next_{0};
  std::atomic<int> pending_{0};
  const std::function<void(int)>* job_ = nullptr;
};

}  // namespace softwood
