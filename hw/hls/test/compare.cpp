// Runs the kernels on vectors and compares with the exact reference: bursts and histograms equal, the sketch within
// its bound. compare STEM|FOLDER...; exit status 1 on a difference, 77 (skipped) where a folder has no vectors.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "checks.h"
#include "weir_kernel_bursts.h"
#include "weir_kernel_histograms.h"
#include "weir_kernel_talkers.h"

using test::at;
using test::DELTA;
using test::EPSILON;
using test::fail;
using test::Figures;
using test::Interval;
using test::Vectors;

namespace
{

template <class State, auto Step, class Setting>
std::vector<test::Word> run(const Vectors &vectors, const Setting &setting)
{
    weir::Control control{};
    auto state = std::make_unique<State>();
    return test::play(vectors.words, [&](auto &input, auto &output) {
        Step(control, *state, input, output, setting);
        return control.has_held != 0;
    });
}

// Estimates of all destinations before the interval is over.
void compare_estimates(const Vectors &vectors, const Interval &wanted, const weir::TalkerState &state, int bank,
                       Figures &figures)
{
    test::Sent totals{}, over{};
    for (const auto &[key, sent] : wanted.talkers) {
        for (int w = 0; w < 3; w++)
            totals[w] += sent[w];
    }
    for (const auto &[key, sent] : wanted.talkers) {
        const auto estimate = weir::estimate_of(state, bank, key[0], key[1], vectors.seed);
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

Figures compare_talkers(const Vectors &vectors)
{
    Figures figures;
    weir::Control control{};
    auto state = std::make_unique<weir::TalkerState>();
    size_t interval = 0;
    const auto results = test::play(
        vectors.words,
        [&](auto &input, auto &output) {
            weir::talker_step(control, *state, input, output, vectors.seed);
            return control.has_held != 0;
        },
        [&](size_t i) {
            const weir::Word word = weir::unpack(vectors.words[i].data());
            const uint64_t start = word.timestamp / 100000000 * 100000000;
            if (control.counting && (start != control.start || word.kind == weir::WORD_END)) {
                if (interval >= vectors.intervals.size())
                    fail("more intervals than there are");
                compare_estimates(vectors, vectors.intervals[interval++], *state, control.bank, figures);
            }
        });
    if (interval != vectors.intervals.size())
        fail("fewer intervals than there are");
    test::check_talkers(results, vectors, figures);
    return figures;
}

bool compare(const std::string &stem)
{
    try {
        const Vectors vectors = test::read_vectors(stem);
        test::check_bursts(run<weir::BurstState, weir::burst_step>(vectors, vectors.threshold), vectors);
        test::check_histograms(run<weir::HistogramState, weir::histogram_step>(vectors, vectors.services), vectors);
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
