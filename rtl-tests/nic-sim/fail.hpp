// The end with a reason.

#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

[[noreturn]] inline void fail(const std::string &message)
{
    fprintf(stderr, "weir-nic-sim: %s\n", message.c_str());
    exit(2);
}
