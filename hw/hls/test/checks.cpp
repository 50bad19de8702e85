#include "checks.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "weir_kernel_talkers.h"

namespace test
{

const double EPSILON = std::exp(1) / weir::COLUMNS;
const double DELTA = std::exp(-weir::ROWS);

void fail(const std::string &text) { throw std::runtime_error(text); }

std::string at(const Interval &interval) { return " in interval " + std::to_string(interval.start); }

void check_bursts(const std::vector<Word> &results, const Vectors &vectors)
{
    const auto got = bursts_of(results);
    if (got.size() != vectors.intervals.size())
        fail("bursts of " + std::to_string(got.size()) + " intervals");
    for (size_t i = 0; i < got.size(); i++) {
        if (got[i].start != vectors.intervals[i].start || got[i].ports != vectors.intervals[i].ports)
            fail("bursts differ" + at(vectors.intervals[i]));
    }
}

void check_histograms(const std::vector<Word> &results, const Vectors &vectors)
{
    const auto got = histograms_of(results);
    if (got.size() != vectors.intervals.size())
        fail("histograms of " + std::to_string(got.size()) + " intervals");
    for (size_t i = 0; i < got.size(); i++) {
        const Interval &wanted = vectors.intervals[i];
        if (got[i].start != wanted.start || got[i].histograms != wanted.histograms || got[i].samples != wanted.samples)
            fail("histograms differ" + at(wanted));
    }
}

namespace
{

void check_top(const Top &got, const Interval &wanted, Figures &figures)
{
    Sent totals{};
    for (const auto &[key, sent] : wanted.talkers) {
        for (int w = 0; w < 3; w++)
            totals[w] += sent[w];
    }
    if (got.start != wanted.start || got.totals != totals)
        fail("the totals differ" + at(wanted));
    for (int w = 0; w < 3; w++) {
        std::vector<uint64_t> truth;
        for (const auto &[key, sent] : wanted.talkers) {
            if (sent[w] > 0)
                truth.push_back(sent[w]);
        }
        std::sort(truth.rbegin(), truth.rend());
        if (got.top[w].size() != std::min<size_t>(truth.size(), weir::TOP))
            fail("not as many destinations as there are" + at(wanted));
        for (const auto &[key, estimates] : got.top[w]) {
            const auto found = wanted.talkers.find(key);
            if (found == wanted.talkers.end())
                fail("a destination that nobody sent to" + at(wanted));
            for (int i = 0; i < 3; i++) {
                // With few destinations a column of its own in some row is all but certain: exact.
                const double slack = truth.size() <= weir::TOP ? 0 : EPSILON * totals[i];
                if (estimates[i] < found->second[i] || estimates[i] > found->second[i] + slack)
                    fail("a destination's figure is off" + at(wanted));
            }
        }
        const double least = truth.size() > weir::TOP ? truth[weir::TOP] + 2 * EPSILON * totals[w] : 0;
        for (const auto &[key, sent] : wanted.talkers) {
            const bool due = sent[w] > 0 && sent[w] > least && (truth.size() <= weir::TOP || sent[0] >= 32);
            figures.due += due;
            if (due && !got.top[w].count(key))
                fail("one of those with the most is not named" + at(wanted));
        }
    }
}

} // namespace

void check_talkers(const std::vector<Word> &results, const Vectors &vectors, Figures &figures)
{
    const auto got = talkers_of(results);
    if (got.size() != vectors.intervals.size())
        fail("talkers of " + std::to_string(got.size()) + " intervals");
    for (size_t i = 0; i < got.size(); i++)
        check_top(got[i], vectors.intervals[i], figures);
}

} // namespace test
