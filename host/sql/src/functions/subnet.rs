//! Addresses in subnets.

use std::net::IpAddr;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanBuilder};
use arrow::datatypes::DataType;
use datafusion::common::exec_datafusion_err;

use super::{Function, Kind};

/// The first bits of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subnet {
    address: IpAddr,
    bits: u32,
}

impl Subnet {
    /// From "10.0.0.0/8" or "2001:db8::/32"; what stands after the prefix's bits does not count.
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let bits = bits.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        (bits <= most).then_some(Self { address, bits })
    }

    fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(subnet), IpAddr::V4(address)) => {
                let different = subnet.to_bits() ^ address.to_bits();
                different.leading_zeros() >= self.bits
            }
            (IpAddr::V6(subnet), IpAddr::V6(address)) => {
                let different = subnet.to_bits() ^ address.to_bits();
                different.leading_zeros() >= self.bits
            }
            // Mapped addresses (RFC 4291 section 2.5.5.2) are IPv4.
            (IpAddr::V4(_), IpAddr::V6(address)) => address.to_ipv4_mapped().is_some_and(|v4| self.contains(v4.into())),
            (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

pub(super) fn in_subnet() -> Function {
    Function::new(
        "in_subnet",
        &[("address", Kind::Text), ("subnet", Kind::Text)],
        DataType::Boolean,
        "Whether an IPv4 or IPv6 address is in a subnet as '10.0.0.0/8' or '2001:db8::/32'; NULL for text that is no \
         address.",
        |arguments| {
            let (addresses, subnets) = (arguments[0].as_string_view(), arguments[1].as_string_view());
            let mut result = BooleanBuilder::with_capacity(addresses.len());
            // The subnet is nearly always a constant, and addresses come in runs.
            let mut subnet: Option<(&str, Subnet)> = None;
            let mut address: Option<(&str, Option<IpAddr>)> = None;
            for (row_address, row_subnet) in addresses.iter().zip(subnets) {
                let (Some(row_address), Some(row_subnet)) = (row_address, row_subnet) else {
                    result.append_null();
                    continue;
                };
                let subnet = match subnet {
                    Some((text, subnet)) if text == row_subnet => subnet,
                    _ => {
                        let parsed = Subnet::parse(row_subnet).ok_or_else(|| {
                            exec_datafusion_err!(
                                "in_subnet: {row_subnet:?} is no subnet; one looks like 10.0.0.0/8 or 2001:db8::/32"
                            )
                        })?;
                        subnet.insert((row_subnet, parsed)).1
                    }
                };
                let address = match address {
                    Some((text, address)) if text == row_address => address,
                    _ => address.insert((row_address, row_address.parse().ok())).1,
                };
                result.append_option(address.map(|address| subnet.contains(address)));
            }
            Ok(Arc::new(result.finish()) as ArrayRef)
        },
    )
}
