// Clocks start low. Registers, clocks and reset included, start random, and the first evaluation comes before a bench can
// set its pins: a clock that is high then may be an edge outside of reset, which writes what is random into memories and
// wakes assertions.

#include <cstring>

#include "vpi_user.h"

namespace
{

PLI_INT32 lower_clocks(p_cb_data)
{
    vpiHandle modules = vpi_iterate(vpiModule, nullptr);
    while (vpiHandle module = modules ? vpi_scan(modules) : nullptr) {
        vpiHandle pins = vpi_iterate(vpiReg, module);
        while (vpiHandle pin = pins ? vpi_scan(pins) : nullptr) {
            if (vpi_get(vpiDirection, pin) != vpiInput || !std::strstr(vpi_get_str(vpiName, pin), "clk"))
                continue;
            s_vpi_value low{};
            low.format = vpiIntVal;
            vpi_put_value(pin, &low, nullptr, vpiNoDelay);
        }
    }
    return 0;
}

struct QuietStart {
    QuietStart()
    {
        s_cb_data callback{};
        callback.reason = cbStartOfSimulation;
        callback.cb_rtn = lower_clocks;
        vpi_register_cb(&callback);
    }
} quiet_start;

} // namespace
