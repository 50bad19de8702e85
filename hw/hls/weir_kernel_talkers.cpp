#include "weir_kernel_talkers.h"

namespace weir
{

namespace
{

const int SYN_AND_ACK = 0x12;
const int SYN = 0x02;

bool parity(uint64_t bits)
{
#pragma HLS INLINE
    for (int i = 32; i > 0; i /= 2) {
#pragma HLS UNROLL
        bits ^= bits >> i;
    }
    return bits & 1;
}

uint32_t column(uint64_t columns, int row)
{
#pragma HLS INLINE
    return columns >> COLUMN_WIDTH * row & (COLUMNS - 1);
}

uint32_t smaller(uint32_t a, uint32_t b)
{
#pragma HLS INLINE
    return a < b ? a : b;
}

// The bytes of a number in the order of memory, the highest first.
uint64_t network_order(uint64_t number)
{
#pragma HLS INLINE
    uint64_t out = 0;
    for (int i = 0; i < 8; i++) {
#pragma HLS UNROLL
        out |= (number >> 8 * i & 0xff) << (56 - 8 * i);
    }
    return out;
}

// A tree, so that it ends within TOP_LAG clocks.
uint8_t least_of(const TopTable &table, int weight)
{
#pragma HLS INLINE
    uint8_t place[TOP];
    uint32_t value[TOP];
#pragma HLS ARRAY_PARTITION variable = place complete
#pragma HLS ARRAY_PARTITION variable = value complete
    for (int i = 0; i < TOP; i++) {
#pragma HLS UNROLL
        place[i] = i;
        value[i] = table.entries[i].estimates.of[weight];
    }
    for (int half = TOP / 2; half > 0; half /= 2) {
#pragma HLS UNROLL
        for (int i = 0; i < half; i++) {
#pragma HLS UNROLL
            const bool other = value[i + half] < value[i];
            place[i] = other ? place[i + half] : place[i];
            value[i] = other ? value[i + half] : value[i];
        }
    }
    return place[0];
}

void enter(TopTable &table, int weight, bool weighs, uint64_t high, uint64_t low, const Counters &estimates)
{
#pragma HLS INLINE
    const uint8_t least = table.least[TOP_LAG - 1];
    bool found = false;
    uint8_t place = 0;
    for (int i = 0; i < TOP; i++) {
#pragma HLS UNROLL
        if (i < table.used && table.entries[i].high == high && table.entries[i].low == low) {
            found = true;
            place = i;
        }
    }
    const bool room = table.used < TOP;
    if (!found)
        place = room ? table.used : least;
    // An entry that is not in use has 0.
    const bool enters = weighs && estimates.of[weight] > table.entries[place].estimates.of[weight];
    for (int i = TOP_LAG - 1; i > 0; i--) {
#pragma HLS UNROLL
        table.least[i] = table.least[i - 1];
    }
    table.least[0] = least_of(table, weight);
    if (found || enters) {
        table.entries[place].high = high;
        table.entries[place].low = low;
        table.entries[place].estimates = estimates;
    }
    if (!found && enters && room)
        table.used++;
}

// What is in registers; the rows are walked.
void forget(TalkerState &state, int bank)
{
#pragma HLS INLINE
    for (int weight = 0; weight < WEIGHTS; weight++) {
#pragma HLS UNROLL
        state.top[bank][weight] = TopTable();
    }
    state.totals[bank] = Totals();
}

} // namespace

uint64_t columns_of(uint64_t high, uint64_t low, ap_uint<SEED_WIDTH> seed)
{
#pragma HLS INLINE
    uint64_t columns = 0;
    const uint64_t lanes[3] = {seed.range(63, 0).to_uint64(), seed.range(127, 64).to_uint64(),
                               seed.range(191, 128).to_uint64()};
    for (int i = 0; i < ROWS * COLUMN_WIDTH; i++) {
#pragma HLS UNROLL
        const uint64_t first = i == 0 ? lanes[0] : lanes[0] >> i | lanes[1] << (64 - i);
        const uint64_t second = i == 0 ? lanes[1] : lanes[1] >> i | lanes[2] << (64 - i);
        columns |= uint64_t(parity((low & first) ^ (high & second))) << i;
    }
    return columns;
}

Counters estimate_of(const TalkerState &state, int bank, uint64_t high, uint64_t low, ap_uint<SEED_WIDTH> seed)
{
    const uint64_t columns = columns_of(high, low, seed);
    Counters estimate = {{~uint32_t(0), ~uint32_t(0), ~uint32_t(0)}};
    for (int row = 0; row < ROWS; row++) {
        const Counters counters = ram_read(state.rows[bank][row], column(columns, row));
        for (int weight = 0; weight < WEIGHTS; weight++)
            estimate.of[weight] = smaller(estimate.of[weight], counters.of[weight]);
    }
    return estimate;
}

void talker_step(Control &control, TalkerState &state, hls::stream<word_t> &s_word, hls::stream<result_t> &m_result,
                 ap_uint<SEED_WIDTH> seed)
{
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = state.rows complete dim = 1
#pragma HLS ARRAY_PARTITION variable = state.rows complete dim = 2
#pragma HLS ARRAY_PARTITION variable = state.top complete dim = 0
#pragma HLS ARRAY_PARTITION variable = state.totals complete dim = 0
    const Turn turn = take_turn<COLUMNS>(control, s_word, m_result);
    const Word &word = turn.word;
    const bool count = turn.count && (word.class_ == CLASS_TCP || word.class_ == CLASS_OTHER);
    const bool syn = word.class_ == CLASS_TCP && (word.flags & SYN_AND_ACK) == SYN;
    const Counters weights = {{1, word.wire_length, syn}};
    const uint64_t high = word.destination_high;
    const uint64_t low = word.destination_low;
    const uint64_t columns = count ? columns_of(high, low, seed) : 0;

    for (int bank = 0; bank < BOTH_BANKS; bank++) {
#pragma HLS UNROLL
        const bool counts = bank == turn.bank && !turn.boot;
        if (!counts && !turn.walk) {
            for (int row = 0; row < ROWS; row++) {
#pragma HLS UNROLL
                ram_write(state.rows[bank][row], false, 0, Counters());
            }
            continue;
        }
        Counters estimates = {{~uint32_t(0), ~uint32_t(0), ~uint32_t(0)}};
        for (int row = 0; row < ROWS; row++) {
#pragma HLS UNROLL
            const uint32_t where = counts ? column(columns, row) : turn.at;
            Counters value = ram_read(state.rows[bank][row], where);
            for (int weight = 0; weight < WEIGHTS; weight++) {
#pragma HLS UNROLL
                value.of[weight] = counts ? add_saturating(value.of[weight], weights.of[weight]) : 0;
                estimates.of[weight] = smaller(estimates.of[weight], value.of[weight]);
            }
            ram_write(state.rows[bank][row], counts ? count : turn.walk, where, value);
        }
        if (counts && count) {
            for (int weight = 0; weight < WEIGHTS; weight++) {
#pragma HLS UNROLL
                state.totals[bank].of[weight] += weights.of[weight];
                enter(state.top[bank][weight], weight, weights.of[weight] != 0, high, low, estimates);
            }
        }
    }
    if (turn.boot && turn.last) {
        for (int bank = 0; bank < BOTH_BANKS; bank++) {
#pragma HLS UNROLL
            forget(state, bank);
        }
    }
    if (!turn.walk || turn.boot)
        return;

    const uint8_t walked = !turn.bank;
    const uint8_t weight = turn.at / TOP;
    const uint8_t place = turn.at % TOP;
    if (turn.last) {
        TopMore end;
        end.packets = state.totals[walked].of[0];
        end.bytes = state.totals[walked].of[1];
        end.syns = state.totals[walked].of[2];
        end.lost = control.lost;
        forget(state, walked);
        write_result(control, make_result(end, 0, control.walked_start), true);
    } else if (turn.at < WEIGHTS * TOP && place < state.top[walked][weight].used) {
        const TopEntry &entry = state.top[walked][weight].entries[place];
        Top top;
        top.address[0] = network_order(entry.high);
        top.address[1] = network_order(entry.low);
        top.packets = entry.estimates.of[0];
        top.bytes = entry.estimates.of[1];
        top.syns = entry.estimates.of[2];
        write_result(control, make_result(top, weight, control.walked_start), false);
    }
}

} // namespace weir

void weir_kernel_talkers(hls::stream<weir::word_t> &s_word, hls::stream<weir::result_t> &m_result,
                         ap_uint<weir::SEED_WIDTH> seed)
{
#pragma HLS INTERFACE mode = axis port = s_word
#pragma HLS INTERFACE mode = axis port = m_result
#pragma HLS INTERFACE mode = ap_none port = seed
#pragma HLS STABLE variable = seed
#pragma HLS INTERFACE mode = ap_ctrl_none port = return
#pragma HLS PIPELINE II = 1
    static weir::Control control;
#pragma HLS RESET variable = control
    static weir::TalkerState state;
    weir::talker_step(control, state, s_word, m_result, seed);
}
