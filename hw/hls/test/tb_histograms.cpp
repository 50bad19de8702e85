// Test bench of the kernel's top function, for the vendor's tool too (csim, cosim): tb_histograms STEM.

#include <cstdio>
#include <exception>

#include "checks.h"
#include "weir_kernel_histograms.h"

int main(int count, char **arguments)
{
    try {
        const test::Vectors vectors = test::read_vectors(count > 1 ? arguments[1] : "demo.pcap");
        const auto results = test::play(vectors.words, [&](auto &input, auto &output) {
            weir_kernel_histograms(input, output, vectors.services);
            return false;
        });
        test::check_histograms(results, vectors);
        printf("%zu intervals equal\n", vectors.intervals.size());
        return 0;
    } catch (const std::exception &problem) {
        printf("%s\n", problem.what());
        return 1;
    }
}
