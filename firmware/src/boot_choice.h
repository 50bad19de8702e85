// Which image the boot ROM starts.
//
// In this order: a good image that the record does not know (just loaded), of the preferred slot first; a good image
// that is confirmed or has tries left, of the preferred slot first; a good image without tries, since a card that keeps
// trying harms nothing (the link is in bypass) and a card without firmware cannot be asked. The record counts the try.
#ifndef WEIR_BOOT_CHOICE_H
#define WEIR_BOOT_CHOICE_H

#include "boot_record.h"

// `checks` are done; `loaded`: the host has just loaded slot A, which runs if it is good, with new tries. False: no good
// image; the record says why.
WEIR_CHECKED bool boot_choose(struct boot_record *record, const struct image_check checks[IMAGE_SLOTS], bool loaded);

#endif
