// The compiler for the card has no C library; of assert.h only this is used.
#ifndef WEIR_ASSERT_H
#define WEIR_ASSERT_H

#define static_assert _Static_assert

#endif
