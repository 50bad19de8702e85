// The kernels' C++ inside a simulated system (weir_kernel_*.sv beside this file): one call per clock.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "weir_kernel_bursts.h"
#include "weir_kernel_histograms.h"
#include "weir_kernel_talkers.h"

namespace
{

// Words of a bit vector as DPI hands it over: 32 bits each, lowest first.
template <int Width> ap_uint<Width> bits(const uint32_t *words)
{
    ap_uint<Width> value = 0;
    for (int i = 0; i < (Width + 31) / 32; i++)
        value.range(i * 32 + 31 < Width ? i * 32 + 31 : Width - 1, i * 32) = words[i];
    return value;
}

struct Kernel {
    virtual ~Kernel() = default;
    virtual void reset() = 0;
    virtual void clock(const uint32_t *config) = 0;

    // As deep as the registers of the vendor's AXI4-Stream ports.
    hls::stream<weir::word_t> input;
    hls::stream<weir::result_t> output;

    Kernel() { output.set_room(2); }
};

template <class State, int ConfigWidth,
          void (*Step)(weir::Control &, State &, hls::stream<weir::word_t> &, hls::stream<weir::result_t> &,
                       ap_uint<ConfigWidth>)>
struct Model : Kernel {
    weir::Control control{};
    std::unique_ptr<State> state = std::make_unique<State>();

    // What the reset of the IP does: streams, and what the RESET pragma names.
    void reset() override
    {
        control = weir::Control();
        while (!input.empty())
            input.read();
        while (!output.empty())
            output.read();
    }

    void clock(const uint32_t *config) override { Step(control, *state, input, output, bits<ConfigWidth>(config)); }
};

} // namespace

extern "C" {

// kind: 0 bursts, 1 histograms, 2 talkers.
void *weir_kernel_new(int kind)
{
    switch (kind) {
    case 0:
        return static_cast<Kernel *>(new Model<weir::BurstState, 32 * weir::PORTS, weir::burst_step>);
    case 1:
        return static_cast<Kernel *>(new Model<weir::HistogramState, 16 * (weir::SERVICES - 1), weir::histogram_step>);
    case 2:
        return static_cast<Kernel *>(new Model<weir::TalkerState, weir::SEED_WIDTH, weir::talker_step>);
    default:
        return nullptr;
    }
}

void weir_kernel_reset(void *handle) { static_cast<Kernel *>(handle)->reset(); }

// One clock: `taken` is the word that went over at s_word, `sent` says that the word at m_result did. Afterwards:
// whether there is room for a word, whether there is a result, and which.
void weir_kernel_clock(void *handle, unsigned char taken, const uint32_t *word, unsigned char sent,
                       const uint32_t *config, unsigned char *ready, unsigned char *valid, uint32_t *result,
                       unsigned char *last)
{
    Kernel &kernel = *static_cast<Kernel *>(handle);
    if (taken)
        kernel.input.write(bits<512>(word));
    if (sent)
        kernel.output.read();
    kernel.clock(config);
    *ready = kernel.input.size() < 2;
    *valid = !kernel.output.empty();
    *last = 0;
    if (!*valid) {
        std::fill_n(result, 16, 0);
        return;
    }
    const weir::result_t front = kernel.output.front();
    *last = front.last.to_uint();
    for (int i = 0; i < 16; i++)
        result[i] = weir::word_t(front.data).range(32 * i + 31, 32 * i).to_uint();
}
}
