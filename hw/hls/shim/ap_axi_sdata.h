// A word of AXI4-Stream without user, id and destination, for C simulation only; the vendor's tool has its own.

#ifndef WEIR_SHIM_AP_AXI_SDATA_H
#define WEIR_SHIM_AP_AXI_SDATA_H

#include <ap_int.h>

template <int Data, int User, int Id, int Destination> struct ap_axiu {
    static_assert(User == 0 && Id == 0 && Destination == 0, "without user, id and destination");
    ap_uint<Data> data;
    ap_uint<Data / 8> keep;
    ap_uint<Data / 8> strb;
    ap_uint<1> last;
};

#endif
