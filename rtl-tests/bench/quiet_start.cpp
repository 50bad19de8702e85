// Assertions sleep until time has passed. Registers, clock and reset included, start random, and the first evaluation
// comes before a bench can set its pins: it may see a clock edge outside of reset.

#include "verilated.h"
#include "vpi_user.h"

namespace
{

PLI_INT32 wake(p_cb_data)
{
    Verilated::assertOn(true);
    return 0;
}

struct QuietStart {
    QuietStart()
    {
        Verilated::assertOn(false);
        s_vpi_time delay{vpiSimTime, 0, 1, 0};
        s_cb_data callback{};
        callback.reason = cbAfterDelay;
        callback.cb_rtn = wake;
        callback.time = &delay;
        vpi_register_cb(&callback);
    }
} quiet_start;

} // namespace
