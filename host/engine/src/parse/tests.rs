#![allow(clippy::unwrap_used)]
//! Frames built by hand, one for each encapsulation; then properties over all of them.

use super::*;
use crate::meta::Options;
use proptest::prelude::*;
use weir_record::{TunnelKind, tcp_flag};

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [192, 168, 0, 2];
const PAYLOAD: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
/// NOP, NOP, timestamps.
const STAMPS: &[u8] = &[1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn tcp_with(flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    assert_eq!(options.len() % 4, 0);
    let mut h = vec![
        0x9c, 0x40, 0, 80, 0, 0, 0x10, 0, 0, 0, 0x20, 0, 0, flags, 1, 0, 0, 0, 0, 0,
    ];
    h[12] = (((20 + options.len()) / 4) << 4) as u8;
    join(&[&h, options, payload])
}

fn tcp() -> Vec<u8> {
    tcp_with(tcp_flag::ACK | tcp_flag::PSH, STAMPS, PAYLOAD)
}

fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let words = [source, destination, length, 0];
    join(&[&words.map(u16::to_be_bytes).concat(), payload])
}

fn ip4_of(protocol: u8, options: &[u8], fragment: u16, payload: &[u8]) -> Vec<u8> {
    let total = ((20 + options.len() + payload.len()) as u16).to_be_bytes();
    let f = fragment.to_be_bytes();
    let mut h = vec![0x40, 0, total[0], total[1], 0xab, 0xcd, f[0], f[1], 64, protocol, 0, 0];
    h[0] |= ((20 + options.len()) / 4) as u8;
    join(&[&h, &CLIENT, &SERVER, options, payload])
}

fn ip4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ip4_of(protocol, &[], 0x4000, payload)
}

fn address6(last: u8) -> [u8; 16] {
    let mut a = [0; 16];
    a[0] = 0x20;
    a[15] = last;
    a
}

fn ip6(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    let h = [0x6a, 0xb0, 0, 0, length[0], length[1], next, 63];
    join(&[&h, &address6(1), &address6(2), payload])
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    join(&[&[2, 0, 0, 0, 0, 9], &[2, 0, 0, 0, 0, 8], &kind.to_be_bytes(), payload])
}

/// What became of a frame, and its word.
type Outcome = (Parsed, Meta);

fn parse(profile: Profile, link: LinkType, frame: &[u8], wire: u32) -> Outcome {
    let mut meta = Meta::default();
    (Parser::new(profile).parse(link, frame, wire, &mut meta), meta)
}

fn datagram(context: &Context, data: &[u8], length: u32, wire: u32) -> Outcome {
    let mut meta = Meta::default();
    (Parser::default().datagram(context, data, length, wire, &mut meta), meta)
}

fn full(link: LinkType, frame: &[u8]) -> Outcome {
    parse(Profile::Full, link, frame, frame.len() as u32)
}

fn nic(frame: &[u8]) -> Outcome {
    parse(Profile::Nic, LinkType::Ethernet, frame, frame.len() as u32)
}

#[track_caller]
fn meta((parsed, meta): Outcome) -> Meta {
    match parsed {
        Parsed::Packet => meta,
        other => panic!("not tracked: {other:?}"),
    }
}

#[track_caller]
fn reason((parsed, _): Outcome) -> Untracked {
    match parsed {
        Parsed::Untracked(reason) => reason,
        other => panic!("tracked: {other:?}"),
    }
}

/// The TCP segment of [`tcp`], whatever it is wrapped in.
#[track_caller]
fn assert_segment(m: &Meta) {
    assert_eq!(m.class, Class::Tcp);
    assert_eq!(m.key.protocol, 6);
    assert_eq!((m.key.low.port, m.key.high.port), (40_000, 80));
    assert!(m.from_low);
    assert_eq!(m.payload as usize, PAYLOAD.len());
    assert_eq!((m.seq, m.ack, m.window), (0x1000, 0x2000, 256));
    assert_eq!(m.flags, tcp_flag::ACK | tcp_flag::PSH);
    assert_eq!(m.options.timestamps, Some((7, 9)));
    assert!(!m.options.incomplete);
}

/// Every wrapping with the segment inside, with the name for messages.
fn wrapped() -> Vec<(&'static str, LinkType, Vec<u8>)> {
    use LinkType::*;
    let v4 = ip4(6, &tcp());
    let v6 = ip6(6, &tcp());
    let inner = ethernet(0x0800, &v4);
    // The optional word names an extension header of one unit, which names none.
    let gtp_extended = [0x34, 255, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0x85, 1, 0x10, 9, 0];
    let mut list = vec![
        ("ethernet", Ethernet, inner.clone()),
        ("ethernet ipv6", Ethernet, ethernet(0x86dd, &v6)),
        ("padding", Ethernet, join(&[&inner, &[0; 9]])),
        (
            "ipv4 options",
            Ethernet,
            ethernet(0x0800, &ip4_of(6, &[1; 8], 0, &tcp())),
        ),
        ("vlan", Ethernet, ethernet(0x8100, &join(&[&[0x20, 5, 8, 0], &v4]))),
        (
            "three tags",
            Ethernet,
            ethernet(0x88a8, &join(&[&[0, 5, 0x91, 0, 0, 6, 0x81, 0, 0, 7, 8, 0], &v4])),
        ),
        (
            "mpls",
            Ethernet,
            ethernet(0x8847, &join(&[&[0, 1, 0, 9, 0, 2, 1, 9], &v6])),
        ),
        (
            "pppoe",
            Ethernet,
            ethernet(0x8864, &join(&[&[0x11, 0, 0, 77, 0, 0, 0, 0x21], &v4])),
        ),
        (
            "snap",
            Ethernet,
            ethernet(60, &join(&[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &v4])),
        ),
        ("raw", RawIp, v4.clone()),
        ("raw 6", RawIp, v6.clone()),
        ("null", Null, join(&[&[2, 0, 0, 0], &v4])),
        ("null big-endian", Null, join(&[&[0, 0, 0, 30], &v6])),
        ("loop", Loop, join(&[&[0, 0, 0, 24], &v6])),
        ("ppp", Ppp, join(&[&[0xff, 3, 0, 0x21], &v4])),
        ("ppp short", Ppp, join(&[&[0x21], &v4])),
        (
            "fddi",
            Fddi,
            join(&[&[0x50], &[1; 12], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &v4]),
        ),
        (
            "vn-tag",
            Ethernet,
            ethernet(0x8926, &join(&[&[0x80, 1, 0, 2, 8, 0], &v4])),
        ),
        (
            "e-tag, vlan",
            Ethernet,
            ethernet(0x893f, &join(&[&[0, 0, 0, 7, 0, 0, 0x81, 0, 0, 5, 8, 0], &v4])),
        ),
        (
            "cisco metadata",
            Ethernet,
            ethernet(0x8909, &join(&[&[1, 1, 0, 1, 0, 9, 0x86, 0xdd], &v6])),
        ),
        ("fabric path", Ethernet, ethernet(0x8903, &join(&[&[0, 0x5f], &inner]))),
        ("pbb", Ethernet, ethernet(0x88e7, &join(&[&[0, 0, 0, 9], &inner]))),
        (
            "trill with an option",
            Ethernet,
            ethernet(0x22f3, &join(&[&[0, 0x7f, 0, 1, 0, 2, 0, 0, 0, 0], &inner])),
        ),
        ("llc", Llc, join(&[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &v4])),
        ("cisco hdlc", Ppp, join(&[&[0x0f, 0, 8, 0], &v4])),
        (
            "cisco hdlc, mpls",
            Ppp,
            join(&[&[0x8f, 0, 0x88, 0x47, 0, 1, 1, 9], &v6]),
        ),
        ("frame relay", FrameRelay, join(&[&[0x18, 0x41, 3, 0xcc], &v4])),
        (
            "frame relay, long address, snap",
            FrameRelay,
            join(&[&[0x18, 0x40, 2, 1, 3, 0, 0x80, 0, 0, 0, 0x86, 0xdd], &v6]),
        ),
        ("frame relay, cisco", FrameRelay, join(&[&[0x18, 0x41, 8, 0], &v4])),
        (
            "nflog",
            Nflog,
            join(&[
                &[2, 0, 0, 1],
                &[9, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0],
                &[70, 0, 9, 0],
                &v4,
            ]),
        ),
        (
            "nflog big-endian",
            Nflog,
            join(&[&[10, 0, 0, 1], &[0, 8, 0, 5, 0, 0, 0, 0], &[0, 90, 0, 9], &v6]),
        ),
        ("ipoib", Ipoib, join(&[&[0; 40], &[8, 0, 0, 0], &v4])),
        (
            "pktap",
            Pktap,
            join(&[&[108, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0], &[0; 96], &inner]),
        ),
        (
            "pktap, loopback",
            Pktap,
            join(&[&[108, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], &[0; 96], &[2, 0, 0, 0], &v4]),
        ),
        ("sll", LinuxSll, join(&[&[0, 0, 0, 1, 0, 6], &[3; 8], &[8, 0], &v4])),
        ("sll2", LinuxSll2, join(&[&[0x86, 0xdd], &[0; 9], &[6], &[3; 8], &v6])),
        ("6in4", Ethernet, ethernet(0x0800, &ip4(41, &v6))),
        ("4in6", Ethernet, ethernet(0x86dd, &ip6(4, &v4))),
        ("ip in ip", Ethernet, ethernet(0x0800, &ip4(4, &v4))),
        (
            "ah",
            Ethernet,
            ethernet(0x0800, &ip4(51, &join(&[&[6, 4], &[0; 22], &tcp()]))),
        ),
        (
            "gre",
            Ethernet,
            ethernet(0x0800, &ip4(47, &join(&[&[0, 0, 8, 0], &v4]))),
        ),
        (
            "gre all fields",
            Ethernet,
            ethernet(0x0800, &ip4(47, &join(&[&[0xb0, 0, 0x65, 0x58], &[0; 12], &inner]))),
        ),
        ("wccp", RawIp, ip4(47, &join(&[&[0, 0, 0x88, 0x3e, 0, 0, 0, 1], &v4]))),
        ("wccp 1", RawIp, ip4(47, &join(&[&[0, 0, 0x88, 0x3e], &v4]))),
        (
            "gre of an access point",
            RawIp,
            ip4(
                47,
                &join(&[
                    &[0, 0, 0x82, 0],
                    &[8, 1],
                    &[0; 22],
                    &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
                    &v4,
                ]),
            ),
        ),
        (
            "gre in udp",
            RawIp,
            ip4(17, &udp(50_000, 4754, &join(&[&[0, 0, 8, 0], &v4]))),
        ),
        ("erspan 1", RawIp, ip4(47, &join(&[&[0, 0, 0x88, 0xbe], &inner]))),
        (
            "erspan 2",
            RawIp,
            ip4(
                47,
                &join(&[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 55, 0, 0, 0, 0], &inner]),
            ),
        ),
        (
            "erspan 3",
            RawIp,
            ip4(
                47,
                &join(&[
                    &[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 55, 0, 0, 0, 0, 0, 0, 0, 1],
                    &[0; 8],
                    &inner,
                ]),
            ),
        ),
        (
            "vxlan",
            RawIp,
            ip4(17, &udp(9999, 4789, &join(&[&[8, 0, 0, 0, 0, 0, 42, 0], &inner]))),
        ),
        (
            "vxlan group policy",
            RawIp,
            ip4(17, &udp(9999, 4789, &join(&[&[0x88, 0, 0, 7, 0, 0, 42, 1], &inner]))),
        ),
        (
            "vxlan gpe, ip",
            RawIp,
            ip4(17, &udp(9999, 4790, &join(&[&[0x0c, 0, 0, 1, 0, 0, 42, 0], &v4]))),
        ),
        (
            "vxlan gpe, ethernet",
            RawIp,
            ip4(17, &udp(9999, 4790, &join(&[&[0x0c, 0, 0, 3, 0, 0, 42, 0], &inner]))),
        ),
        (
            "geneve",
            RawIp,
            ip4(17, &udp(9, 6081, &join(&[&[1, 0, 8, 0, 0, 0, 42, 0, 1, 1, 1, 0], &v4]))),
        ),
        (
            "gtp",
            RawIp,
            ip4(17, &udp(9, 2152, &join(&[&[0x30, 255, 0, 0, 0, 0, 0, 9], &v4]))),
        ),
        (
            "gtp extension",
            RawIp,
            ip4(17, &udp(2152, 2152, &join(&[&gtp_extended, &v4]))),
        ),
    ];
    // Hop-by-hop, routing, destination options, atomic fragment, AH.
    let chain = join(&[
        &[43, 0, 1, 4, 0, 0, 0, 0],
        &[60, 1],
        &[0; 14],
        &[44, 0, 1, 4, 0, 0, 0, 0],
        &[51, 0, 0, 0, 0, 0, 0, 1],
        &[6, 4],
        &[0; 22],
        &tcp(),
    ]);
    list.push(("ipv6 extension headers", RawIp, ip6(0, &chain)));
    // 802.11: data from the station, QoS, aligned behind radiotap with TSFT and flags.
    let wlan = join(&[&[0x88, 1, 0, 0], &[4; 20], &[0, 0]]);
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    list.push(("802.11", Ieee80211, join(&[&wlan, &snap, &v4])));
    let tap = join(&[&[0, 0, 25, 0, 3, 0, 0, 0], &[0; 8], &[0x20], &[0; 8]]);
    list.push(("radiotap", Radiotap, join(&[&tap, &wlan, &[0, 0], &snap, &v4])));
    list
}

#[test]
fn the_segment_is_found_in_every_wrapping() {
    for (name, link, frame) in wrapped() {
        let parsed = full(link, &frame);
        println!("{name}: {parsed:?}");
        let m = meta(parsed);
        assert_segment(&m);
        assert_eq!(m.wire as usize, frame.len(), "{name}");
    }
}

#[track_caller]
fn of(name: &str) -> Meta {
    let (_, link, frame) = wrapped().into_iter().find(|(n, ..)| *n == name).unwrap();
    meta(full(link, &frame))
}

#[test]
fn ip_fields() {
    let m = of("ethernet");
    assert_eq!((m.ip_id, m.ttl, m.tos), (0xabcd, 64, 0));
    assert_eq!(m.key.low.ip().to_string(), "10.0.0.1");
    assert_eq!(m.source_mac, [2, 0, 0, 0, 0, 8]);
    assert_eq!(m.destination_mac, [2, 0, 0, 0, 0, 9]);
    let m = of("ethernet ipv6");
    assert_eq!((m.ip_id, m.ttl, m.tos), (0, 63, 0xab));
    assert_eq!(m.key.high.addr, address6(2));
}

#[test]
fn tags_tunnels_and_overlays() {
    assert_eq!(of("vlan").key.vlans, 5);
    assert_eq!(of("three tags").key.vlans, 6 << 12 | 5);
    let tunnel = |name: &str| {
        let m = of(name);
        (TunnelKind::from_u8(m.tunnel_kind).unwrap(), m.tunnel_id, m.key.overlay)
    };
    assert_eq!(tunnel("ethernet"), (TunnelKind::None, 0, 0));
    assert_eq!(tunnel("pppoe"), (TunnelKind::Pppoe, 77, 0));
    assert_eq!(tunnel("6in4"), (TunnelKind::IpInIp, 0, 0));
    assert_eq!(tunnel("gre all fields"), (TunnelKind::Gre, 0, 0));
    assert_eq!(tunnel("erspan 2"), (TunnelKind::Erspan, 55, 0));
    assert_eq!(tunnel("erspan 3"), (TunnelKind::Erspan, 55, 0));
    assert_eq!(tunnel("vxlan"), (TunnelKind::Vxlan, 42, 43));
    assert_eq!(tunnel("vxlan group policy"), (TunnelKind::Vxlan, 42, 43));
    assert_eq!(tunnel("geneve"), (TunnelKind::Geneve, 42, 43));
    assert_eq!(tunnel("gtp"), (TunnelKind::GtpU, 9, 0));
}

#[test]
fn both_directions_have_one_key() {
    let there = of("ethernet");
    let mut back = ip4(6, &tcp());
    let (source, destination): (Vec<u8>, Vec<u8>) = (back[12..16].into(), back[16..20].into());
    back[12..16].copy_from_slice(&destination);
    back[16..20].copy_from_slice(&source);
    back[20..24].copy_from_slice(&[0, 80, 0x9c, 0x40]);
    let back = meta(full(LinkType::RawIp, &back));
    assert_eq!(there.key, back.key);
    assert!(there.from_low && !back.from_low);
}

#[test]
fn segmentation_in_the_card_counts_the_wire() {
    let mut frame = ethernet(0x0800, &ip4(6, &tcp()));
    frame[16..18].copy_from_slice(&[0, 0]);
    let m = meta(parse(Profile::Full, LinkType::Ethernet, &frame, 70_066));
    assert_eq!(m.payload, 70_000);
    let mut frame = ethernet(0x86dd, &ip6(6, &tcp()));
    frame[18..20].copy_from_slice(&[0, 0]);
    let m = meta(parse(Profile::Full, LinkType::Ethernet, &frame, 70_086));
    assert_eq!(m.payload, 70_000);
}

#[test]
fn short_captures_count_right() {
    let frame = ethernet(0x0800, &ip4(6, &tcp()));
    for captured in 50..frame.len() {
        let cut = &frame[..captured];
        let m = meta(parse(Profile::Full, LinkType::Ethernet, cut, frame.len() as u32));
        assert_eq!(m.payload as usize, PAYLOAD.len());
        assert_eq!(m.options.incomplete, captured < 66, "{captured}");
    }
    let cut = parse(Profile::Full, LinkType::Ethernet, &frame[..49], frame.len() as u32);
    assert_eq!(reason(cut), Untracked::Truncated);
}

#[test]
fn headers_bound_what_is_inside_and_the_capture_does_not() {
    // PPPoE says 40 bytes of IP, IP says more.
    let bare = tcp_with(tcp_flag::ACK, &[], &[0; 6]);
    let body = join(&[&[0x11, 0, 0, 77, 0, 42, 0, 0x21], &ip4(6, &bare)]);
    assert_eq!(meta(full(LinkType::Ethernet, &ethernet(0x8864, &body))).payload, 0);
    // An outer packet of 20 + 40 bytes cannot hold more than 40.
    let mut outer = ip4(4, &ip4(6, &bare));
    outer[3] = 60;
    assert_eq!(meta(full(LinkType::RawIp, &outer)).payload, 0);
    // A frame that lost its last bytes before it was captured.
    let whole = ethernet(0x0800, &ip4(6, &tcp()));
    let m = meta(full(LinkType::Ethernet, &whole[..whole.len() - 8]));
    assert_eq!(m.payload as usize, PAYLOAD.len());
}

#[test]
fn malformed_headers() {
    let with = |at: usize, value: u8| {
        let mut frame = ip4(6, &tcp());
        frame[at] = value;
        full(LinkType::RawIp, &frame)
    };
    assert_eq!(reason(with(0, 0x44)), Untracked::Malformed);
    assert_eq!(reason(with(0, 0x55)), Untracked::Malformed);
    assert_eq!(
        reason(with(3, 19)),
        Untracked::Malformed,
        "total length below the header"
    );
    assert_eq!(reason(with(32, 0x40)), Untracked::Malformed, "TCP header of 16 bytes");
    assert_eq!(
        reason(with(32, 0xf0)),
        Untracked::Malformed,
        "TCP header beyond the IP payload"
    );
    assert_eq!(
        reason(full(LinkType::Ethernet, &ethernet(0x0806, &[0; 28]))),
        Untracked::NotIp
    );
}

#[test]
fn syn_options() {
    let options = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
    let o = meta(full(LinkType::RawIp, &ip4(6, &tcp_with(tcp_flag::SYN, &options, &[])))).options;
    assert_eq!((o.mss, o.scale, o.sack_permitted), (1460, 7, true));
    assert_eq!(o.timestamps, Some((1, 0)));
    assert!(!o.incomplete);
    let m = meta(full(LinkType::RawIp, &ip4(6, &tcp_with(tcp_flag::SYN, &options, &[]))));
    assert_eq!(m.ack, 0, "no ACK flag, no acknowledgment number");
}

fn options(bytes: &[u8]) -> Options {
    let mut options = Options::default();
    tcp::options(bytes, &mut options);
    options
}

#[test]
fn sack_blocks() {
    let mut bytes = vec![1, 1, 5, 34];
    bytes.extend((1..=8u32).flat_map(u32::to_be_bytes));
    let o = options(&bytes);
    assert_eq!((o.sack_count, o.sack), (4, [(1, 2), (3, 4), (5, 6), (7, 8)]));
    let o = options(&[5, 9, 0, 0, 0, 0, 0, 0, 0]);
    assert!(o.sack_count == 0 && o.incomplete, "not a multiple of 8");
}

#[test]
fn broken_options_leave_the_packet() {
    for options in [
        &[3, 0, 1, 1][..],
        &[3, 1, 1, 1],
        &[3, 9, 1, 1],
        &[1, 1, 1, 3],
        &[2, 3, 1, 0],
    ] {
        let m = meta(full(
            LinkType::RawIp,
            &ip4(6, &tcp_with(tcp_flag::ACK, options, PAYLOAD)),
        ));
        assert!(m.options.incomplete, "{options:?}");
        assert_eq!(m.payload as usize, PAYLOAD.len());
    }
    let after_end = options(&[0, 3, 0, 0]);
    assert!(!after_end.incomplete);
}

#[test]
fn other_protocols() {
    let m = meta(full(LinkType::RawIp, &ip4(17, &udp(53, 4000, &[0; 30]))));
    assert_eq!((m.class, m.payload), (Class::Other, 30));
    assert_eq!((m.key.protocol, m.key.low.port, m.key.high.port), (17, 53, 4000));
    let m = meta(full(
        LinkType::RawIp,
        &ip4(132, &[0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 9]),
    ));
    assert_eq!((m.key.low.port, m.key.high.port, m.payload), (1, 2, 1));
    let m = meta(full(LinkType::RawIp, &ip4(50, &[0; 40])));
    assert_eq!((m.key.protocol, m.key.low.port, m.payload), (50, 0, 40));
    let m = meta(full(LinkType::RawIp, &ip4(1, &[8, 0, 0, 0, 0x12, 0x34, 0, 1, 9, 9])));
    assert_eq!(
        (m.class, m.key.low.port, m.key.high.port),
        (Class::Other, 0x1234, 0x1234)
    );
    assert_eq!(m.payload, 2);
}

#[test]
fn what_only_looks_like_a_tunnel_is_its_carrier() {
    let m = meta(full(LinkType::RawIp, &ip4(17, &udp(53, 4789, &[0; 30]))));
    assert_eq!((m.key.protocol, m.tunnel_kind, m.key.overlay), (17, 0, 0));
    let arp = join(&[&[8, 0, 0, 0, 0, 0, 42, 0], &ethernet(0x0806, &[0; 28])]);
    let m = meta(full(LinkType::RawIp, &ip4(17, &udp(53, 4789, &arp))));
    assert_eq!((m.key.protocol, m.payload, m.key.overlay), (17, 50, 0));
    let m = meta(full(LinkType::RawIp, &ip4(47, &[0x30, 1, 0x88, 0x0b, 0, 0, 0, 0])));
    assert_eq!((m.class, m.key.protocol), (Class::Other, 47));
}

#[test]
fn icmp_errors_speak_of_the_quoted_packet() {
    let mut quoted = ip4(6, &tcp());
    quoted.truncate(28);
    let frame = ip4(1, &join(&[&[3, 4, 0, 0, 0, 0, 5, 0], &quoted]));
    let m = meta(full(LinkType::RawIp, &frame));
    assert_eq!((m.class, m.payload, m.seq), (Class::IcmpError, 3 * 256 + 4, 0x1000));
    assert_eq!((m.key, m.from_low), (of("raw").key, true));

    let quoted = ip6(60, &join(&[&[6, 0, 0, 0, 0, 0, 0, 0], &tcp()]));
    let frame = ip6(58, &join(&[&[1, 4, 0, 0, 0, 0, 0, 0], &quoted]));
    let m = meta(full(LinkType::RawIp, &frame));
    assert_eq!((m.class, m.payload), (Class::IcmpError, 256 + 4));
    assert_eq!(m.key, of("raw 6").key);

    let too_short = ip4(1, &join(&[&[3, 4, 0, 0, 0, 0, 5, 0], &ip4(6, &tcp())[..27]]));
    assert_eq!(meta(full(LinkType::RawIp, &too_short)).class, Class::Other);
}

#[test]
fn fragments_carry_what_a_reassembler_needs() {
    let segment = tcp();
    let piece = |offset: usize, more: u16, data: &[u8]| {
        let frame = ethernet(0x0800, &ip4_of(6, &[], more | (offset / 8) as u16, data));
        match full(LinkType::Ethernet, &frame).0 {
            Parsed::Fragment(f) => {
                assert_eq!(&frame[f.data.clone()], data);
                f
            }
            other => panic!("{other:?}"),
        }
    };
    let first = piece(0, 0x2000, &segment[..24]);
    let second = piece(24, 0, &segment[24..]);
    assert_eq!(first.key, second.key);
    assert_eq!((first.offset, first.length, first.more), (0, 24, true));
    assert_eq!((second.offset, second.more), (24, false));
    let whole = datagram(&first.context, &segment, segment.len() as u32, 99);
    let m = meta(whole);
    assert_segment(&m);
    assert_eq!(m.wire, 99);

    let header = [6, 0, 0, 25, 0, 0, 0, 7];
    let frame = ip6(44, &join(&[&header, &segment[..24]]));
    match full(LinkType::RawIp, &frame).0 {
        Parsed::Fragment(f) => {
            assert_eq!((f.key.id, f.offset, f.length, f.more), (7, 24, 24, true));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_nic_profile_has_its_limits() {
    let v4 = ip4(6, &tcp());
    assert_segment(&meta(nic(&ethernet(0x0800, &v4))));
    let tags = |n: usize| {
        let mut body = [0, 1, 0x81, 0].repeat(n - 1);
        body.extend([0, 1, 8, 0]);
        body.extend(&v4);
        nic(&ethernet(0x8100, &body))
    };
    assert_segment(&meta(tags(2)));
    assert_eq!(reason(tags(3)), Untracked::Depth);
    let labels = |n: usize| {
        let mut body = [0, 1, 0, 9].repeat(n - 1);
        body.extend([0, 1, 1, 9]);
        body.extend(&v4);
        nic(&ethernet(0x8847, &body))
    };
    assert_segment(&meta(labels(4)));
    assert_eq!(reason(labels(5)), Untracked::Depth);
    let extensions = |n: usize, size: u8| {
        let mut body = Vec::new();
        for i in 1..=n {
            body.extend([if i == n { 6 } else { 60 }, size]);
            body.extend(vec![0; 6 + 8 * usize::from(size)]);
        }
        body.extend(tcp());
        nic(&ethernet(0x86dd, &ip6(60, &body)))
    };
    assert_segment(&meta(extensions(4, 0)));
    assert_eq!(reason(extensions(5, 0)), Untracked::Depth);
    assert_eq!(reason(extensions(2, 12)), Untracked::Depth, "beyond 256 bytes");
    let m = meta(extensions(2, 9));
    assert_eq!(m.payload as usize, PAYLOAD.len());

    let carrier = meta(nic(&ethernet(0x0800, &ip4(41, &ip6(6, &tcp())))));
    assert_eq!(
        (carrier.class, carrier.key.protocol, carrier.tunnel_kind),
        (Class::Other, 41, 0)
    );
    let vxlan = udp(9, 4789, &join(&[&[8, 0, 0, 0, 0, 0, 42, 0], &ethernet(0x0800, &v4)]));
    let carrier = meta(nic(&ethernet(0x0800, &ip4(17, &vxlan))));
    assert_eq!((carrier.key.protocol, carrier.key.overlay), (17, 0));
    let fragment = ethernet(0x0800, &ip4_of(6, &[], 0x2000, &tcp()));
    assert_eq!(reason(nic(&fragment)), Untracked::Fragment);
    let pppoe = ethernet(0x8864, &join(&[&[0x11, 0, 0, 77, 0, 0, 0, 0x21], &v4]));
    assert_eq!(reason(nic(&pppoe)), Untracked::Profile);
    assert_eq!(reason(parse(Profile::Nic, LinkType::RawIp, &v4, 100)), Untracked::Link);
    let frame = ethernet(0x0800, &v4);
    let long = parse(Profile::Nic, LinkType::Ethernet, &frame, NIC_FRAME_BYTES + 1);
    assert_eq!(reason(long), Untracked::Oversize);
}

#[test]
fn endless_headers_end() {
    let tags = [0, 1, 0x81, 0].repeat(100);
    assert_eq!(
        reason(full(LinkType::Ethernet, &ethernet(0x8100, &tags))),
        Untracked::Depth
    );
}

const LINKS: [LinkType; 15] = [
    LinkType::Ethernet,
    LinkType::RawIp,
    LinkType::LinuxSll,
    LinkType::LinuxSll2,
    LinkType::Null,
    LinkType::Loop,
    LinkType::Ppp,
    LinkType::Fddi,
    LinkType::Ieee80211,
    LinkType::Radiotap,
    LinkType::Llc,
    LinkType::FrameRelay,
    LinkType::Nflog,
    LinkType::Ipoib,
    LinkType::Pktap,
];

/// Whatever comes out keeps its promises.
fn check((parsed, m): &Outcome, frame: &[u8]) {
    match parsed {
        Parsed::Packet => {
            assert!(m.wire as usize >= frame.len());
            assert!(m.options.sack_count <= 4);
            assert!(m.key.low <= m.key.high || m.class == Class::IcmpError);
            assert!(m.key.vlans < 1 << 24);
        }
        Parsed::Fragment(f) => {
            assert!(f.data.end <= frame.len() && f.data.start <= f.data.end);
            assert!(f.data.len() <= f.length as usize);
            // Whatever it claims, the context can be used.
            let _ = datagram(&f.context, &frame[f.data.clone()], f.length, 1);
        }
        Parsed::Untracked(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), link in 0..LINKS.len(), wire in any::<u32>()) {
        for profile in [Profile::Full, Profile::Nic] {
            check(&parse(profile, LINKS[link], &bytes, wire), &bytes);
        }
    }

    /// Broken frames reach deeper than random bytes.
    #[test]
    fn no_mutation_panics(
        which in 0..wrapped().len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        wire in prop::option::of(any::<u32>()),
    ) {
        let (_, link, mut frame) = wrapped().swap_remove(which);
        for (at, value) in changes {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        let wire = wire.unwrap_or(frame.len() as u32);
        for profile in [Profile::Full, Profile::Nic] {
            check(&parse(profile, link, &frame, wire), &frame);
        }
        // The short way says what the walk says.
        let (mut short, mut long) = (Meta::default(), Meta::default());
        let wire = wire.max(frame.len() as u32);
        if link == LinkType::Ethernet && plain::parse(&frame, wire, &mut short).is_some() {
            prop_assert!(matches!(Parser::default().walk(link, &frame, wire, &mut long), Parsed::Packet));
            prop_assert_eq!(short, long);
        }
    }

    /// A cut frame has the lengths of the whole one, or is not tracked.
    #[test]
    fn a_cut_invents_nothing(which in 0..wrapped().len(), cut in any::<prop::sample::Index>()) {
        let (name, link, frame) = wrapped().swap_remove(which);
        let whole = meta(full(link, &frame));
        let captured = &frame[..cut.index(frame.len())];
        let (parsed, m) = parse(Profile::Full, link, captured, frame.len() as u32);
        match parsed {
            Parsed::Packet if m.class == Class::Tcp => {
                prop_assert_eq!((m.key, m.payload, m.seq, m.ack, m.window), (whole.key, whole.payload, whole.seq, whole.ack, whole.window), "{}", name);
                prop_assert!(m.options.incomplete || m.options == whole.options);
            }
            Parsed::Packet => prop_assert!(m.payload as usize <= frame.len()),
            Parsed::Untracked(reason) => prop_assert_eq!(reason, Untracked::Truncated, "{}", name),
            Parsed::Fragment(_) => prop_assert!(false, "{}", name),
        }
    }

    /// The two profiles agree on what both can do.
    #[test]
    fn nic_is_full_without_tunnels(tags in 0usize..3, payload in 0usize..1200, six in any::<bool>()) {
        let segment = tcp_with(tcp_flag::ACK, STAMPS, &vec![0; payload]);
        let (kind, packet) = if six { (0x86dd_u16, ip6(6, &segment)) } else { (0x0800, ip4(6, &segment)) };
        let mut body = packet;
        let mut outer = kind;
        for _ in 0..tags {
            body = join(&[&[0, 3], &outer.to_be_bytes(), &body]);
            outer = 0x8100;
        }
        let frame = ethernet(outer, &body);
        let (a, b) = (meta(full(LinkType::Ethernet, &frame)), meta(nic(&frame)));
        prop_assert_eq!(format!("{a:?}"), format!("{b:?}"));
    }
}
