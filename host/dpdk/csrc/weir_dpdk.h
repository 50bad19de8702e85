/* What bindgen reads: the DPDK headers in use, and one accessor.
 * SPDX-License-Identifier: Apache-2.0 */
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>
#include <rte_version.h>

/* rte_errno is a macro over thread-local storage, out of bindgen's reach. */
static inline int weir_rte_errno(void) { return rte_errno; }

/* A macro with a cast inside; the constant itself is not visible to bindgen. */
static inline int weir_socket_id_any(void) { return SOCKET_ID_ANY; }
