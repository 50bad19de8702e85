#include "weir_kernel_histograms.h"

namespace weir
{

namespace
{

const uint64_t REQUESTED = uint64_t(1) << 63;

ap_uint<3> service_of(ap_uint<16> port, ap_uint<16 * (SERVICES - 1)> services)
{
#pragma HLS INLINE
    ap_uint<3> service = SERVICES - 1;
    for (int i = SERVICES - 2; i >= 0; i--) {
#pragma HLS UNROLL
        const ap_uint<16> entry = services.range(16 * i + 15, 16 * i);
        if (entry == port && entry != 0)
            service = i;
    }
    return service;
}

uint16_t port_of(ap_uint<3> service, ap_uint<16 * (SERVICES - 1)> services)
{
#pragma HLS INLINE
    return service == SERVICES - 1 ? 0 : services.range(16 * service + 15, 16 * service).to_uint();
}

// One more in a cell of the bank that counts; the cell of the other bank that the walk is at, which becomes 0.
template <int Size>
uint32_t count_and_walk(Ram<uint32_t, Size> banks[BOTH_BANKS], const Turn &turn, bool count, uint32_t address,
                        bool walk, uint32_t at)
{
#pragma HLS INLINE
    uint32_t walked = 0;
    for (int bank = 0; bank < BOTH_BANKS; bank++) {
#pragma HLS UNROLL
        const bool counts = bank == turn.bank && !turn.boot;
        const uint32_t where = counts ? address : at;
        const uint32_t value = ram_read(banks[bank], where);
        if (!counts)
            walked = value;
        ram_write(banks[bank], counts ? count : walk, where, counts ? add_saturating(value, 1) : 0);
    }
    return walked;
}

} // namespace

ap_uint<BUCKET_WIDTH> bucket_of(ap_uint<LIMIT_WIDTH> ns)
{
#pragma HLS INLINE
    ap_uint<BUCKET_WIDTH> bucket = 0;
    for (int k = 10; k < LIMIT_WIDTH; k++) {
#pragma HLS UNROLL
        if (ns[k])
            bucket = 1 + 4 * (k - 10) + ns.range(k - 1, k - 2).to_uint();
    }
    return bucket;
}

void histogram_step(Control &control, HistogramState &state, hls::stream<word_t> &s_word,
                    hls::stream<result_t> &m_result, ap_uint<16 * (SERVICES - 1)> services)
{
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = state.round_trips complete dim = 1
#pragma HLS ARRAY_PARTITION variable = state.responses complete dim = 1
#pragma HLS ARRAY_PARTITION variable = state.eight complete
#pragma HLS ARRAY_PARTITION variable = state.samples complete
#pragma HLS BIND_STORAGE variable = state.requests.cells type = ram_t2p impl = uram
    const Turn turn = take_turn<HISTOGRAM_STEPS>(control, s_word, m_result);
    const Word &word = turn.word;
    const ap_uint<3> service = turn.count ? service_of(word.server_port, services) : ap_uint<3>(0);

    const bool segment = turn.count && word.tracked && word.class_ == CLASS_TCP;
    const bool from_client = segment && word.new_data && !word.from_server;
    const bool from_server = segment && word.new_data && word.from_server;
    const uint64_t kept = ram_read(state.requests, word.index);
    const bool requested = !word.fresh && (kept & REQUESTED) != 0;
    const uint64_t waited = word.timestamp - (kept & ~REQUESTED);
    const bool responded = from_server && requested && waited >> LIMIT_WIDTH == 0;
    const uint64_t next = from_client ? REQUESTED | word.timestamp : requested && !from_server ? kept : 0;
    ram_write(state.requests, segment, word.index, next);

    const bool timed = turn.count && word.tracked && word.rtt_valid;
    ap_uint<11> round_trip = 0;
    if (timed)
        round_trip = (ap_uint<1>(word.rtt_of_server), service, bucket_of(word.rtt));
    ap_uint<10> response = 0;
    if (responded)
        response = (service, bucket_of(waited));
    const bool walk_responses = turn.at >= ROUND_TRIP_CELLS;
    const uint32_t walked_round_trips = count_and_walk(state.round_trips, turn, timed, round_trip.to_uint(),
                                                       turn.walk && !walk_responses, turn.at % ROUND_TRIP_CELLS);
    const uint32_t walked_responses = count_and_walk(state.responses, turn, responded, response.to_uint(),
                                                     turn.walk && walk_responses, turn.at % RESPONSE_CELLS);
    if (!turn.walk || turn.boot)
        return;

    // The walk's address: metric, service, bucket.
    const uint32_t walked = walk_responses ? walked_responses : walked_round_trips;
    const uint8_t place = turn.at % 8;
    const uint8_t metric = turn.at / RESPONSE_CELLS;
    const uint8_t walked_service = turn.at / BUCKETS % SERVICES;
    const uint8_t first_bucket = turn.at % BUCKETS - place;
    const uint32_t before = turn.at % RESPONSE_CELLS == 0 ? 0 : state.samples[metric];
    state.samples[metric] = add_saturating(before, walked);
    state.eight[place] = walked;
    uint32_t any = 0;
    for (int i = 0; i < 8; i++) {
#pragma HLS UNROLL
        any |= state.eight[i];
    }
    // The last buckets of a histogram are not in use: the walk's last address is free for the word that ends it.
    if (turn.last) {
        HistogramMore end;
        for (int i = 0; i < METRICS; i++) {
#pragma HLS UNROLL
            end.samples[i] = state.samples[i];
        }
        end.lost = control.lost;
        write_result(control, make_result(end, 0, control.walked_start), true);
    } else if (place == 7 && any != 0) {
        Histogram eight;
        for (int i = 0; i < 8; i++) {
#pragma HLS UNROLL
            eight.counts[i] = state.eight[i];
        }
        eight.port = port_of(walked_service, services);
        eight.first_bucket = first_bucket;
        const uint8_t arg = metric * 16 + walked_service;
        write_result(control, make_result(eight, arg, control.walked_start), false);
    }
}

} // namespace weir

void weir_kernel_histograms(hls::stream<weir::word_t> &s_word, hls::stream<weir::result_t> &m_result,
                            ap_uint<16 * (weir::SERVICES - 1)> services)
{
#pragma HLS INTERFACE mode = axis port = s_word
#pragma HLS INTERFACE mode = axis port = m_result
#pragma HLS INTERFACE mode = ap_none port = services
#pragma HLS STABLE variable = services
#pragma HLS INTERFACE mode = ap_ctrl_none port = return
#pragma HLS PIPELINE II = 1
    static weir::Control control;
#pragma HLS RESET variable = control
    static weir::HistogramState state;
    weir::histogram_step(control, state, s_word, m_result, services);
}
