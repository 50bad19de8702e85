// Runs the kernels on vectors and compares with the exact reference: bursts and histograms equal, the sketch within
// its bound. compare STEM|FOLDER...; exit status 1 on a difference, 77 (skipped) where a folder has no vectors.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "vectors.h"
#include "weir_kernel_bursts.h"
#include "weir_kernel_histograms.h"
#include "weir_kernel_talkers.h"

using test::Interval;
using test::Vectors;

namespace
{

// The published bound (weir_kernel_talkers.h).
const double EPSILON = std::exp(1) / weir::COLUMNS;
const double DELTA = std::exp(-weir::ROWS);

[[noreturn]] void fail(const std::string &text) { throw std::runtime_error(text); }

std::string at(const Interval &interval) { return " in interval " + std::to_string(interval.start); }

void compare_bursts(const Vectors &vectors)
{
    auto state = std::make_unique<weir::BurstState>();
    const auto got = test::bursts_of(test::play(vectors.words, [&](auto &input, auto &output) {
        weir::burst_step(*state, input, output, vectors.threshold);
        return state->control.has_held != 0;
    }));
    if (got.size() != vectors.intervals.size())
        fail("bursts of " + std::to_string(got.size()) + " intervals");
    for (size_t i = 0; i < got.size(); i++) {
        if (got[i].start != vectors.intervals[i].start || got[i].ports != vectors.intervals[i].ports)
            fail("bursts differ" + at(vectors.intervals[i]));
    }
}

void compare_histograms(const Vectors &vectors)
{
    auto state = std::make_unique<weir::HistogramState>();
    const auto got = test::histograms_of(test::play(vectors.words, [&](auto &input, auto &output) {
        weir::histogram_step(*state, input, output, vectors.services);
        return state->control.has_held != 0;
    }));
    if (got.size() != vectors.intervals.size())
        fail("histograms of " + std::to_string(got.size()) + " intervals");
    for (size_t i = 0; i < got.size(); i++) {
        const Interval &wanted = vectors.intervals[i];
        if (got[i].start != wanted.start || got[i].histograms != wanted.histograms || got[i].samples != wanted.samples)
            fail("histograms differ" + at(wanted));
    }
}

struct Figures {
    size_t keys = 0, over = 0, due = 0;
    double worst = 0;
};

// Estimates of all destinations before the interval is over.
void compare_estimates(const Vectors &vectors, const Interval &wanted, const weir::TalkerState &state, Figures &figures)
{
    test::Sent totals{}, over{};
    for (const auto &[key, sent] : wanted.talkers) {
        for (int w = 0; w < 3; w++)
            totals[w] += sent[w];
    }
    for (const auto &[key, sent] : wanted.talkers) {
        const auto estimate = weir::estimate_of(state, state.control.bank, key[0], key[1], vectors.seed);
        for (int w = 0; w < 3; w++) {
            if (estimate.of[w] < sent[w])
                fail("an estimate is below the truth" + at(wanted));
            const double error = estimate.of[w] - sent[w];
            over[w] += error > EPSILON * totals[w];
            if (totals[w] > 0)
                figures.worst = std::max(figures.worst, error / totals[w]);
        }
        figures.keys++;
    }
    for (int w = 0; w < 3; w++) {
        figures.over += over[w];
        if (over[w] > DELTA * wanted.talkers.size())
            fail("the bound is not kept for " + std::to_string(over[w]) + " of " +
                 std::to_string(wanted.talkers.size()) + at(wanted));
    }
}

void compare_top(const test::Top &got, const Interval &wanted, Figures &figures)
{
    test::Sent totals{};
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

Figures compare_talkers(const Vectors &vectors)
{
    Figures figures;
    auto state = std::make_unique<weir::TalkerState>();
    size_t interval = 0;
    const auto results = test::play(
        vectors.words,
        [&](auto &input, auto &output) {
            weir::talker_step(*state, input, output, vectors.seed);
            return state->control.has_held != 0;
        },
        [&](size_t i) {
            const weir::Word word = weir::unpack(vectors.words[i].data());
            const uint64_t start = word.timestamp / 100000000 * 100000000;
            if (state->control.counting && (start != state->control.start || word.kind == weir::WORD_END)) {
                if (interval >= vectors.intervals.size())
                    fail("more intervals than there are");
                compare_estimates(vectors, vectors.intervals[interval++], *state, figures);
            }
        });
    const auto got = test::talkers_of(results);
    if (got.size() != vectors.intervals.size() || interval != got.size())
        fail("talkers of " + std::to_string(got.size()) + " intervals");
    for (size_t i = 0; i < got.size(); i++)
        compare_top(got[i], vectors.intervals[i], figures);
    return figures;
}

bool compare(const std::string &stem)
{
    try {
        const Vectors vectors = test::read_vectors(stem);
        compare_bursts(vectors);
        compare_histograms(vectors);
        const Figures figures = compare_talkers(vectors);
        printf("equal    %s: %zu words, %zu intervals; %zu destinations, largest error %.6f N (epsilon %.6f), "
               "%zu of %zu over it, %zu due in the tops\n",
               stem.c_str(), vectors.words.size(), vectors.intervals.size(), figures.keys, figures.worst, EPSILON,
               figures.over, 3 * figures.keys, figures.due);
        return true;
    } catch (const std::exception &problem) {
        printf("DIFFERS  %s: %s\n", stem.c_str(), problem.what());
        return false;
    }
}

} // namespace

int main(int count, char **arguments)
{
    std::vector<std::string> stems;
    for (int i = 1; i < count; i++) {
        const std::filesystem::path path = arguments[i];
        if (!std::filesystem::is_directory(path)) {
            stems.push_back(path.string());
            continue;
        }
        for (const auto &entry : std::filesystem::directory_iterator(path)) {
            if (entry.path().extension() == ".words")
                stems.push_back((path / entry.path().stem()).string());
        }
    }
    if (stems.empty()) {
        printf("skipped: no vectors\n");
        return 77;
    }
    std::sort(stems.begin(), stems.end());
    const size_t equal = std::count_if(stems.begin(), stems.end(), compare);
    printf("%zu of %zu equal\n", equal, stems.size());
    return equal == stems.size() ? 0 : 1;
}
