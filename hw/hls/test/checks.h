// Results of the kernels against the exact reference; all throw std::runtime_error at the first difference.

#ifndef WEIR_TEST_CHECKS_H
#define WEIR_TEST_CHECKS_H

#include <string>
#include <vector>

#include "vectors.h"

namespace test
{

// The published bound of the sketch (weir_kernel_talkers.h).
extern const double EPSILON;
extern const double DELTA;

struct Figures {
    size_t keys = 0, over = 0, due = 0;
    double worst = 0;
};

[[noreturn]] void fail(const std::string &text);
std::string at(const Interval &interval);

void check_bursts(const std::vector<Word> &results, const Vectors &vectors);
void check_histograms(const std::vector<Word> &results, const Vectors &vectors);
// The named destinations, their figures within the bound, and the totals.
void check_talkers(const std::vector<Word> &results, const Vectors &vectors, Figures &figures);

} // namespace test

#endif
