#include "weir_kernel_bursts.h"

namespace weir
{

namespace
{

PortCounts counted(PortCounts counts, const Word &word, uint32_t threshold)
{
#pragma HLS INLINE
    const ap_uint<24> offset = word.timestamp - word.fine_start;
    const uint16_t bin = word.fine_digit * 100 + bin_of(offset).to_uint();
    const bool same_bin = counts.frames != 0 && counts.bin == bin;
    const uint32_t before = same_bin ? counts.bin_bytes : 0;
    const uint32_t bytes = add_saturating(before, word.wire_length);
    const bool was_above = same_bin && before >= threshold;

    counts.bytes += word.wire_length;
    counts.frames++;
    counts.bin = bin;
    counts.bin_bytes = bytes;
    if (bytes > counts.peak) {
        counts.peak = bytes;
        counts.peak_bin = bin;
    }
    if (threshold != 0 && bytes >= threshold && !was_above) {
        const bool goes_on = counts.above != 0 && counts.run_bin + 1 == bin;
        counts.above++;
        counts.bursts += !goes_on;
        counts.run = goes_on ? counts.run + 1 : 1;
        counts.run_bin = bin;
        if (counts.run > counts.longest)
            counts.longest = counts.run;
        counts.edges |= bin == 0 ? 1 : bin == BINS_PER_INTERVAL - 1 ? 2 : 0;
    }
    return counts;
}

} // namespace

void burst_step(Control &control, BurstState &state, hls::stream<word_t> &s_word, hls::stream<result_t> &m_result,
                ap_uint<32 * PORTS> threshold)
{
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = state.counts complete dim = 0
    const Turn turn = take_turn<PORTS>(control, s_word, m_result);
    const uint8_t port = turn.word.port % PORTS;
    const uint8_t walked = turn.at;
    const PortCounts result = state.counts[!turn.bank][walked];
    if (turn.count) {
        const uint32_t limit = threshold.range(32 * port + 31, 32 * port).to_uint();
        state.counts[turn.bank][port] = counted(state.counts[turn.bank][port], turn.word, limit);
    }
    if (turn.walk) {
        state.counts[!turn.bank][walked] = PortCounts();
        if (turn.boot) {
            state.counts[turn.bank][walked] = PortCounts();
        } else {
            Burst burst;
            burst.bytes = result.bytes;
            burst.frames = result.frames;
            burst.peak = result.peak;
            burst.peak_bin = result.peak_bin;
            burst.edges = result.edges;
            burst.bursts = result.bursts;
            burst.longest = result.longest;
            burst.above = result.above;
            burst.threshold = threshold.range(32 * walked + 31, 32 * walked).to_uint();
            burst.lost = control.lost;
            write_result(control, make_result(burst, walked, control.walked_start), turn.last);
        }
    }
}

} // namespace weir

void weir_kernel_bursts(hls::stream<weir::word_t> &s_word, hls::stream<weir::result_t> &m_result,
                        ap_uint<32 * weir::PORTS> threshold)
{
#pragma HLS INTERFACE mode = axis port = s_word
#pragma HLS INTERFACE mode = axis port = m_result
#pragma HLS INTERFACE mode = ap_none port = threshold
#pragma HLS STABLE variable = threshold
#pragma HLS INTERFACE mode = ap_ctrl_none port = return
#pragma HLS PIPELINE II = 1
    static weir::Control control;
#pragma HLS RESET variable = control
    static weir::BurstState state;
    weir::burst_step(control, state, s_word, m_result, threshold);
}
