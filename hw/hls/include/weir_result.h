// What the kernels write: records (weir_result_layout.h, made from proto/records.toml), numbers little-endian. The kernels
// leave version, lane and sequence 0: whoever puts the words among the records fills them in (hw/rtl/weir_statistics.sv).

#ifndef WEIR_RESULT_H
#define WEIR_RESULT_H

#include <ap_axi_sdata.h>
#include <ap_int.h>
#include <stdint.h>

#include "weir_result_layout.h"

namespace weir
{

// TLAST: the last word of an interval's results.
typedef ap_axiu<512, 0, 0, 0> result_t;

struct Result {
    uint64_t lanes[RESULT_LANES];
};

template <class Record> Result make_result(const Record &record, uint8_t arg, uint64_t time)
{
#pragma HLS INLINE
    Result result;
    for (int i = 0; i < RESULT_LANES; i++) {
#pragma HLS UNROLL
        result.lanes[i] = 0;
    }
    result.lanes[0] = uint64_t(Record::KIND) | uint64_t(Record::FLAGS) << 8 | uint64_t(arg) << 24;
    result.lanes[2] = time;
    put(result.lanes, record);
    return result;
}

} // namespace weir

#endif
