// The most multiply-adds of float32 a second that some threads reach, in billions: sums in registers, nothing else.
//
//     c++ -O3 -march=native -std=c++20 -pthread peak.cpp -o peak && ./peak THREADS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

typedef float Lanes __attribute__((vector_size(64)));

constexpr int kSums = 16;  // independent, so that none waits for another
constexpr long kRounds = 1'000'000;

float spin() {
  Lanes sum[kSums];
  for (int k = 0; k < kSums; ++k) sum[k] = Lanes{} + 1e-3f * static_cast<float>(k);
  Lanes factor = Lanes{} + 0.999f, term = Lanes{} + 1e-4f;
  for (long round = 0; round < kRounds; ++round) {
    for (int k = 0; k < kSums; ++k) sum[k] = sum[k] * factor + term;
  }
  float total = 0;
  for (int k = 0; k < kSums; ++k) total += sum[k][0];
  return total;
}

int main(int argc, char** argv) {
  const int n_threads = argc > 1 ? std::atoi(argv[1]) : 1;
  double best = 0;
  volatile float keep = 0;
  for (int repeat = 0; repeat < 40; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int k = 0; k < n_threads; ++k) threads.emplace_back([&] { keep = spin(); });
    for (auto& thread : threads) thread.join();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const double rate = 1e-9 * kRounds * kSums * 16 * n_threads / seconds.count();
    best = rate > best ? rate : best;
  }
  std::printf("%.1f\n", best);
}
