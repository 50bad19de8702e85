// Test bench of the kernel's top function, for the vendor's tool too (csim, cosim): tb_talkers STEM.

#include <cstdio>
#include <exception>

#include "checks.h"
#include "weir_kernel_talkers.h"

int main(int count, char **arguments)
{
    try {
        const test::Vectors vectors = test::read_vectors(count > 1 ? arguments[1] : "demo.pcap");
        const auto results = test::play(vectors.words, [&](auto &input, auto &output) {
            weir_kernel_talkers(input, output, vectors.seed);
            return false;
        });
        test::Figures figures;
        test::check_talkers(results, vectors, figures);
        printf("%zu intervals equal\n", vectors.intervals.size());
        return 0;
    } catch (const std::exception &problem) {
        printf("%s\n", problem.what());
        return 1;
    }
}
