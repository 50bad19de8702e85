//! Devices without a network: the source and sink of nothing, and a ring that gives back what is sent.
#![allow(clippy::unwrap_used)]

use weir_dpdk::{BURST, Burst, Eal, EalConfig, Mempool, Port, PortConfig};

#[test]
fn frames_go_round_and_buffers_come_home() {
    let eal = Eal::init(&EalConfig::default()).unwrap();
    let config = PortConfig {
        buffers: Some(2048),
        ..PortConfig::default()
    };
    let open = |name: &str| Port::open(&eal, &name.parse().unwrap(), &config).unwrap();

    let null = open("null");
    let mut burst = Burst::new();
    assert_eq!(null.rx_burst(&mut burst), BURST);
    assert!(
        burst
            .iter()
            .all(|frame| frame.length() == 64 && frame.driver_time_ns().is_none())
    );
    assert_eq!(null.tx_burst(&mut burst), BURST);
    assert!(burst.is_empty() && null.tx_burst(&mut burst) == 0);
    let stats = null.stats();
    assert_eq!((stats.received, stats.sent, stats.drops_known), (32, 32, true));

    let ring = open("net_ring0");
    let pool = Mempool::new(&eal, 1024, 2048).unwrap();
    let home = pool.available();
    for round in 0..200_u8 {
        let mut sent = Burst::new();
        for number in 0..BURST as u8 {
            assert!(sent.push_copy(&pool, &[round ^ number; 100]));
        }
        assert!(!sent.push_copy(&pool, &[0; 100]), "a burst is full at {BURST}");
        // Some are dropped here, some go; a second holder still reads all of what it shares.
        let dropped = sent.retain(|frame| frame.segments().all(|data| (data[0] ^ round) % 2 == 0));
        assert_eq!((dropped, sent.len()), (BURST / 2, BURST / 2));
        let shared = sent.share();
        assert_eq!(ring.tx_burst(&mut sent), BURST / 2);
        let mut got = Burst::new();
        assert_eq!(ring.rx_burst(&mut got), BURST / 2);
        drop(sent);
        let mut scratch = Vec::new();
        for (number, (one, other)) in got.iter().zip(shared.iter()).enumerate() {
            let expected = [round ^ (2 * number as u8); 100];
            assert_eq!(one.contiguous(&mut scratch), expected);
            assert_eq!(other.contiguous(&mut Vec::new()), expected);
        }
        drop(got);
        assert_eq!(
            pool.available(),
            home - BURST as u32 / 2,
            "shared buffers are still out"
        );
        drop(shared);
        assert_eq!(pool.available(), home);
    }

    // An empty pool and a frame that is too long are refused, not cut.
    let mut burst = Burst::new();
    assert!(!burst.push_copy(&pool, &[0; 2049]));
    let mut held = Vec::new();
    loop {
        let mut burst = Burst::new();
        while burst.push_copy(&pool, &[1; 60]) {}
        if burst.is_empty() {
            break;
        }
        held.push(burst);
        assert!(held.len() <= 1024 / BURST);
    }
    assert_eq!(pool.available(), 0);
    drop(held);
    assert_eq!(pool.available(), home);

    // A pool with a frame still in the ring is not handed on; one without is.
    let mut left = Burst::new();
    assert!(left.push_copy(&pool, &[7; 60]));
    assert_eq!(ring.tx_burst(&mut left), 1);
    drop((left, burst));
    drop(pool);
    let other = Mempool::new(&eal, 1024, 2048).unwrap();
    assert_eq!(other.available(), 1024);
    let mut got = Burst::new();
    assert_eq!(ring.rx_burst(&mut got), 1);
    assert_eq!(got.iter().next().unwrap().segments().next().unwrap(), [7; 60]);
    got.clear();
    drop(got);

    // Opening and closing does not use the memory up.
    for _ in 0..300 {
        let port = Port::open(
            &eal,
            &"null".parse().unwrap(),
            &PortConfig {
                buffers: Some(8192),
                ..config.clone()
            },
        )
        .unwrap();
        let mut burst = Burst::new();
        assert_eq!(port.rx_burst(&mut burst), BURST);
    }
}
