// cmocka with what it wants included before it.
#ifndef WEIR_CHECK_H
#define WEIR_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mock.h"

static inline int fresh(void **state)
{
    (void)state;
    mock_reset();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

#endif
